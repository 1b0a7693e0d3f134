//! Parameters of a Mitsuba scene: set by `<default>` and `--define`, used as `$name` in attributes.

/// The parameters of a scene.
#[derive(Debug, Default)]
pub(super) struct Parameters(Vec<Parameter>);

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
        Self(defines.iter().map(parameter).collect())
    }

    /// Sets the value of a parameter that has none.
    pub(super) fn set_default(&mut self, name: &str, value: &str) {
        if self.0.iter().all(|p| p.name != name) {
            self.0.push(Parameter {
                name: name.into(),
                value: value.into(),
                unused: false,
            });
        }
    }

    /// The names given on the command line that nothing has used.
    pub(super) fn unused(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|p| p.unused).map(|p| p.name.as_str())
    }

    /// `text` with each `$name` replaced by its value, where the longest known name that fits counts; `\$` is a dollar
    /// sign.
    ///
    /// # Errors
    /// There is no such parameter.
    pub(super) fn substitute(&mut self, text: &str) -> Result<String, String> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            if let Some(before) = rest[..at].strip_suffix('\\') {
                out.push_str(before);
                out.push('$');
                rest = &rest[at + 1..];
                continue;
            }
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let fitting = self.0.iter_mut().filter(|p| rest.starts_with(p.name.as_str()));
            let Some(found) = fitting.max_by_key(|p| p.name.len()) else {
                let end = rest
                    .find(|c: char| !c.is_alphanumeric() && c != '_')
                    .unwrap_or(rest.len());
                let name = &rest[..end];
                return Err(format!(
                    "there is no parameter ${name}; put <default name=\"{name}\" value=\"…\"/> before it, or say \
                     --define {name}=…"
                ));
            };
            found.unused = false;
            out.push_str(&found.value);
            rest = &rest[found.name.len()..];
        }
        out.push_str(rest);
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_counts_and_the_command_line_comes_first() {
        let mut parameters = Parameters::given(&[("spp".into(), "4".into()), ("idle".into(), "1".into())]);
        parameters.set_default("spp", "16");
        parameters.set_default("sppm", "8");
        assert_eq!(parameters.substitute("$spp $sppm-$spp").as_deref(), Ok("4 8-4"));
        assert_eq!(parameters.substitute(r"a\$spp").as_deref(), Ok("a$spp"));
        assert_eq!(parameters.substitute("plain").as_deref(), Ok("plain"));
        assert_eq!(parameters.unused().collect::<Vec<_>>(), ["idle"]);
        let mut none = Parameters::default();
        assert!(none.substitute("x$res_y+").expect_err("undefined").contains("$res_y;"));
    }
}
