//! Parameters of a Mitsuba scene: set by `<default>` and `--define`, used as `$name` in attributes.

use std::collections::{BTreeSet, HashMap};

/// Most bytes that values of parameters add to one attribute. Values may name parameters in turn, so that without a limit
/// a few short lines grow tenfold each.
const MAX_ADDED: usize = 1 << 16;

/// Most bytes that values of parameters add to all attributes.
const MAX_ADDED_IN_ALL: usize = 1 << 26;

/// The parameters of a scene.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    list: Vec<Parameter>,
    /// Places in `list` by name.
    places: HashMap<String, usize>,
    /// Lengths of names, in bytes.
    lengths: BTreeSet<usize>,
    /// Bytes that values have added so far.
    added: usize,
    /// Whether they have added more than they may.
    is_spent: bool,
}

#[derive(Debug)]
struct Parameter {
    name: String,
    value: String,
    /// Whether it was given on the command line and has not been used yet.
    unused: bool,
}

impl Parameters {
    /// The parameters of the command line.
    pub(super) fn given(defines: &[(String, String)]) -> Self {
        let parameter = |(name, value): &(String, String)| Parameter {
            name: name.clone(),
            value: value.clone(),
            unused: true,
        };
        let mut parameters = Self::default();
        defines.iter().map(parameter).for_each(|p| parameters.add(p));
        parameters
    }

    fn add(&mut self, parameter: Parameter) {
        self.lengths.insert(parameter.name.len());
        self.places.insert(parameter.name.clone(), self.list.len());
        self.list.push(parameter);
    }

    /// Sets the value of a parameter that has none.
    pub(super) fn set_default(&mut self, name: &str, value: &str) {
        if !self.places.contains_key(name) {
            self.add(Parameter {
                name: name.into(),
                value: value.into(),
                unused: false,
            });
        }
    }

    /// The names given on the command line that nothing has used, with another value that was given later, if any.
    pub(super) fn unused(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let of = |(i, p): (usize, &'_ Parameter)| {
            let last = self.places[&p.name];
            (i != last).then(|| self.list[last].value.as_str())
        };
        let unused = self.list.iter().enumerate().filter(|(_, p)| p.unused);
        unused.map(move |(i, p)| (p.name.as_str(), of((i, p))))
    }

    /// `text` with each `$name` replaced by its value, where the longest known name that fits counts; `\$` is a dollar
    /// sign.
    ///
    /// # Errors
    /// There is no such parameter, or the values are too long.
    pub(super) fn substitute(&mut self, text: &str) -> Result<String, String> {
        let mut out = String::with_capacity(text.len());
        let (mut rest, mut added) = (text, 0);
        while let Some(at) = rest.find('$') {
            if let Some(before) = rest[..at].strip_suffix('\\') {
                out.push_str(before);
                out.push('$');
                rest = &rest[at + 1..];
                continue;
            }
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let Some(place) = self.longest(rest) else {
                return Err(unknown(rest));
            };
            self.list[place].unused = false;
            let found = &self.list[place];
            added += found.value.len();
            self.added += found.value.len();
            let name = &found.name;
            self.is_spent = added > MAX_ADDED || self.added > MAX_ADDED_IN_ALL;
            if added > MAX_ADDED {
                return Err(format!(
                    "${name} makes this attribute longer than {MAX_ADDED} bytes; give that parameter a shorter value"
                ));
            }
            if self.is_spent {
                return Err(format!(
                    "with ${name}, parameters add more than {} MiB to the scene; give them shorter values",
                    MAX_ADDED_IN_ALL >> 20
                ));
            }
            out.push_str(&found.value);
            rest = &rest[found.name.len()..];
        }
        out.push_str(rest);
        Ok(out)
    }

    /// Whether the values have added more to attributes than they may.
    pub(super) fn is_spent(&self) -> bool {
        self.is_spent
    }

    /// The parameter with the longest name that `text` begins with.
    fn longest(&self, text: &str) -> Option<usize> {
        let names = self.lengths.iter().rev().filter_map(|length| text.get(..*length));
        names.filter_map(|name| self.places.get(name).copied()).next()
    }
}

/// The mistake that no parameter's name follows a dollar sign.
fn unknown(text: &str) -> String {
    let end = text
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    let name = &text[..end];
    format!(
        "there is no parameter ${name}; put <default name=\"{name}\" value=\"…\"/> before it, or say --define {name}=…"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_counts_and_the_command_line_comes_first() {
        let given = [("spp", "2"), ("spp", "4"), ("idle", "1")].map(|(name, value)| (name.into(), value.into()));
        let mut parameters = Parameters::given(&given);
        parameters.set_default("spp", "16");
        parameters.set_default("sppm", "8");
        assert_eq!(parameters.substitute("$spp $sppm-$spp").as_deref(), Ok("4 8-4"));
        assert_eq!(parameters.substitute(r"a\$spp").as_deref(), Ok("a$spp"));
        assert_eq!(parameters.substitute("plain").as_deref(), Ok("plain"));
        let unused: Vec<_> = parameters.unused().collect();
        assert_eq!(unused, [("spp", Some("4")), ("idle", None)]);
        let mut none = Parameters::default();
        assert!(none.substitute("x$res_y+").expect_err("undefined").contains("$res_y;"));
    }

    #[test]
    fn values_add_so_many_bytes_and_no_more() {
        let half = "x".repeat(MAX_ADDED / 2);
        let mut parameters = Parameters::given(&[("half".into(), half), ("one".into(), "x".into())]);
        // The attribute's own text has no limit.
        let text = format!("{}$half$half", "y".repeat(MAX_ADDED));
        assert_eq!(parameters.substitute(&text).map(|found| found.len()), Ok(2 * MAX_ADDED));
        assert!(!parameters.is_spent());
        let more = (0..).map_while(|_| parameters.substitute("$half$half").ok()).count();
        assert_eq!(more + 1, MAX_ADDED_IN_ALL / MAX_ADDED);
        assert!(parameters.is_spent());
        let error = parameters.substitute("$one").expect_err("spent");
        assert!(error.contains("with $one, parameters add more than 64 MiB"), "{error}");
        parameters.added = 0;
        let error = parameters.substitute("$half$half$one").expect_err("too long");
        assert!(
            error.starts_with("$one makes this attribute longer than 65536 bytes"),
            "{error}"
        );
        assert!(parameters.is_spent());
    }
}
