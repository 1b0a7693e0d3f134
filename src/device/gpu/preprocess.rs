//! Shader text from modules: `#import path`, `#ifdef`, `#ifndef`, `#else`, `#endif`, and a map of lines back to files.
//!
//! Declarations at WGSL's module scope may stand in any order, so that a module is pasted once, at its first import.

use std::collections::{HashMap, HashSet};

/// Text for a shader compiler, and where each of its lines came from.
#[derive(Debug, Clone, Default)]
pub struct Composed {
    pub text: String,
    /// Module and line (from 1) of each line of `text`.
    lines: Vec<(String, usize)>,
}

impl Composed {
    /// The place `module.wgsl:line` that line `line` (from 1) of the text came from.
    pub fn place(&self, line: usize) -> String {
        match self.lines.get(line.wrapping_sub(1)) {
            Some((module, line)) => format!("shaders/{module}.wgsl:{line}"),
            None => format!("line {line} of the composed shader"),
        }
    }
}

/// A mistake in the directives, with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("shaders/{module}.wgsl:{line}: {message}")]
pub struct PreprocessError {
    pub module: String,
    pub line: usize,
    pub message: String,
}

/// Composes the module `entry` with everything that it imports; `modules` maps paths without `.wgsl` to texts.
///
/// # Errors
/// An unknown module or directive, or conditions that do not pair up.
pub fn compose(modules: &HashMap<String, String>, entry: &str, defines: &[&str]) -> Result<Composed, PreprocessError> {
    let mut composer = Composer {
        modules,
        defines,
        seen: HashSet::new(),
        out: Composed::default(),
    };
    composer.module(entry, None)?;
    Ok(composer.out)
}

struct Composer<'a> {
    modules: &'a HashMap<String, String>,
    defines: &'a [&'a str],
    seen: HashSet<String>,
    out: Composed,
}

/// An open `#ifdef`.
struct Condition {
    line: usize,
    /// Whether the lines of the current branch are kept.
    active: bool,
    has_else: bool,
}

impl Composer<'_> {
    fn module(&mut self, path: &str, importer: Option<(&str, usize)>) -> Result<(), PreprocessError> {
        let Some(text) = self.modules.get(path) else {
            let (module, line) = importer.unwrap_or((path, 0));
            return Err(error(module, line, format!("there is no shader module `{path}`")));
        };
        if !self.seen.insert(path.to_owned()) {
            return Ok(());
        }
        let mut conditions: Vec<Condition> = Vec::new();
        for (number, line) in text.lines().enumerate().map(|(i, l)| (i + 1, l)) {
            let Some(directive) = line.trim_start().strip_prefix('#') else {
                if conditions.iter().all(|c| c.active) {
                    self.push(line, path, number);
                }
                continue;
            };
            let (name, argument) = directive.split_once(' ').unwrap_or((directive, ""));
            self.directive(name.trim(), argument.trim(), path, number, &mut conditions)?;
        }
        match conditions.last() {
            Some(open) => Err(error(path, open.line, "this condition has no `#endif`".into())),
            None => Ok(()),
        }
    }

    fn directive(
        &mut self,
        name: &str,
        argument: &str,
        path: &str,
        line: usize,
        conditions: &mut Vec<Condition>,
    ) -> Result<(), PreprocessError> {
        match name {
            "import" => {
                if conditions.iter().all(|c| c.active) {
                    self.module(argument, Some((path, line)))?;
                }
            }
            "ifdef" | "ifndef" => conditions.push(Condition {
                line,
                active: self.defines.contains(&argument) == (name == "ifdef"),
                has_else: false,
            }),
            "else" => match conditions.last_mut() {
                Some(open) if !open.has_else => {
                    open.active = !open.active;
                    open.has_else = true;
                }
                _ => return Err(error(path, line, "`#else` without `#ifdef`".into())),
            },
            "endif" => {
                if conditions.pop().is_none() {
                    return Err(error(path, line, "`#endif` without `#ifdef`".into()));
                }
            }
            _ => return Err(error(path, line, format!("unknown directive `#{name}`"))),
        }
        Ok(())
    }

    fn push(&mut self, line: &str, path: &str, number: usize) {
        self.out.text.push_str(line);
        self.out.text.push('\n');
        self.out.lines.push((path.to_owned(), number));
    }
}

fn error(module: &str, line: usize, message: String) -> PreprocessError {
    PreprocessError {
        module: module.to_owned(),
        line,
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(list: &[(&str, &str)]) -> HashMap<String, String> {
        list.iter().map(|(p, t)| ((*p).to_owned(), (*t).to_owned())).collect()
    }

    #[test]
    fn imports_once_and_remembers_lines() {
        let modules = modules(&[
            ("main", "#import a\n#import b\nmain"),
            ("a", "// a\n#import b\na"),
            ("b", "b"),
        ]);
        let composed = compose(&modules, "main", &[]).expect("sound modules");
        assert_eq!(composed.text, "// a\nb\na\nmain\n");
        assert_eq!(composed.place(2), "shaders/b.wgsl:1");
        assert_eq!(composed.place(3), "shaders/a.wgsl:3");
        assert_eq!(composed.place(4), "shaders/main.wgsl:3");
    }

    #[test]
    fn conditions_nest() {
        let modules = modules(&[("m", "#ifdef A\na\n#ifndef B\nab\n#else\nb\n#endif\n#else\nnone\n#endif")]);
        let text = |defines: &[&str]| compose(&modules, "m", defines).expect("sound module").text;
        assert_eq!(text(&[]), "none\n");
        assert_eq!(text(&["A"]), "a\nab\n");
        assert_eq!(text(&["A", "B"]), "a\nb\n");
        assert_eq!(text(&["B"]), "none\n");
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, line) in [
            ("x\n#import nothing", 2),
            ("#endif", 1),
            ("#ifdef A\nx", 1),
            ("#ifdef A\n#else\n#else\n#endif", 3),
            ("#include a", 1),
        ] {
            let found = compose(&modules(&[("m", text)]), "m", &[]).expect_err(text);
            assert_eq!((found.module.as_str(), found.line), ("m", line), "{text}: {found}");
        }
    }
}
