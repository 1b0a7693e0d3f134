//! Objects that record which of their parameters were read, so that all others can be reported as unknown.

use std::fmt::Display;

use super::definitions::{Definition, Form};
use super::diagnostics::suggest;
use super::json::Member;
use super::reader::{Limit, Value};
use super::vocabulary::{self, Class, Known};

/// An object during reading; records the parameters that were read.
#[derive(Debug)]
pub(super) struct Object<'a> {
    pub(super) value: Value<'a>,
    /// Its type, or the key of the block.
    pub(super) name: &'static str,
    definition: &'static Definition,
    members: &'a [Member],
    seen: Vec<bool>,
    allowed: Vec<&'static str>,
}

impl<'a> Object<'a> {
    /// The object with these members.
    pub(super) fn new(value: Value<'a>, definition: &'static Definition, members: &'a [Member]) -> Self {
        Self {
            value,
            name: definition.name,
            definition,
            members,
            seen: vec![false; members.len()],
            allowed: Vec::new(),
        }
    }

    fn index(&self, key: &str) -> Option<usize> {
        self.members.iter().position(|m| m.name == key)
    }

    /// Marks a parameter that is handled elsewhere as read.
    pub(super) fn skip(&mut self, key: &str) {
        if let Some(i) = self.index(key) {
            self.seen[i] = true;
        }
    }

    /// Records a mistake of the object as a whole.
    pub(super) fn error(&self, what: impl Display, advice: impl Display) {
        self.value.error(what, advice);
    }

    /// The parameter `key`, if given.
    pub(super) fn get(&mut self, key: &'static str) -> Option<Value<'a>> {
        if !self.allowed.contains(&key) {
            self.definition.form(key);
            self.allowed.push(key);
        }
        let i = self.index(key)?;
        self.seen[i] = true;
        Some(self.value.child(&self.members[i].value, key))
    }

    /// The parameter `key`, which must be given.
    pub(super) fn require(&mut self, key: &'static str, expected: &str) -> Option<Value<'a>> {
        let value = self.get(key);
        if value.is_none() {
            self.error(format!("`{}` lacks `{key}`", self.name), format!("give {expected}"));
        }
        value
    }

    /// A number within the limit that the definition states.
    fn limited(&self, value: &Value<'a>, key: &str) -> Option<f64> {
        match self.definition.form(key) {
            Form::Number(limit) => value.number(limit),
            other => panic!("`{key}` of `{}` is defined as {other:?}, not as a number", self.name),
        }
    }

    /// A number, or the default if it is absent or invalid.
    pub(super) fn number(&mut self, key: &'static str, default: f32) -> f32 {
        let value = self.get(key);
        value
            .and_then(|value| self.limited(&value, key))
            .map_or(default, |x| x as f32)
    }

    /// A number that must be given.
    pub(super) fn require_number(&mut self, key: &'static str, expected: &str) -> Option<f64> {
        let value = self.require(key, expected)?;
        self.limited(&value, key)
    }

    /// An integer, or the default if it is absent or invalid.
    pub(super) fn integer(&mut self, key: &'static str, default: u32) -> u32 {
        self.integer_up_to(key, default, u32::MAX)
    }

    /// As [`Object::integer`], with an additional limit from elsewhere in the scene.
    pub(super) fn integer_up_to(&mut self, key: &'static str, default: u32, most: u32) -> u32 {
        let value = self.get(key);
        let Form::Integer(low, high) = self.definition.form(key) else {
            panic!("`{key}` of `{}` is not defined as a whole number", self.name);
        };
        let value = value.and_then(|value| value.integer(low, high.min(most.into())));
        value.map_or(default, |n| n as u32)
    }

    /// `true` or `false`, or the default if it is absent or invalid.
    pub(super) fn boolean(&mut self, key: &'static str, default: bool) -> bool {
        self.get(key).and_then(|value| value.boolean()).unwrap_or(default)
    }

    /// One of a few words, or the default if it is absent or invalid.
    pub(super) fn choice<T: Copy>(&mut self, key: &'static str, words: &[(&'static str, T)], default: T) -> T {
        self.choice_of(key, words, &[], default)
    }

    /// As [`Object::choice`]; `unsupported` are words of Mitsuba's that are not supported.
    pub(super) fn choice_of<T: Copy>(
        &mut self,
        key: &'static str,
        words: &[(&'static str, T)],
        unsupported: &[&str],
        default: T,
    ) -> T {
        let defined = matches!(self.definition.form(key), Form::Words(names)
            if names.len() == words.len() && words.iter().all(|(word, _)| names.contains(word)));
        assert!(defined, "`{key}` of `{}` is defined with other words", self.name);
        self.get(key)
            .and_then(|value| value.choice(words, unsupported))
            .unwrap_or(default)
    }

    /// Checks a parameter of Mitsuba's of which only one value is supported.
    pub(super) fn only(&mut self, key: &'static str, supported: impl Into<serde_json::Value>) {
        let supported = supported.into();
        if let Some(value) = self.get(key).filter(|value| !value.node.equals(&supported)) {
            let what = format!("`{key}` of `{}` is {}", self.name, value.describe());
            value.error(what, format!("only {supported} is supported so far"));
        }
    }

    /// Members not read yet whose type is of `class`, or is unknown and may be a misspelt one: index, value and status.
    fn candidates(&self, class: Class) -> Vec<(usize, Value<'a>, Known)> {
        let mut found = Vec::new();
        for (i, member) in self.members.iter().enumerate().filter(|(i, _)| !self.seen[*i]) {
            let value = self.value.child(&member.value, &member.name);
            if value.type_name().is_none() {
                continue;
            }
            let target = value.resolve();
            let known = target
                .and_then(|target| target.type_name().map(vocabulary::lookup))
                .unwrap_or(Known::Nobody);
            if matches!(known, Known::Supported(c) | Known::Mitsuba(c) if c == class) || known == Known::Nobody {
                found.push((i, value, known));
            }
        }
        found
    }

    /// Whether this object contains one of `class`, valid or not.
    pub(super) fn mentions(&self, class: Class) -> bool {
        !self.candidates(class).is_empty()
    }

    /// The nested objects of `class` under any names, with these names, in the order of the file.
    pub(super) fn nested_all(&mut self, class: Class) -> Vec<(&'a str, Value<'a>)> {
        self.allowed.push(class.usual_key());
        let mut candidates = self.candidates(class);
        candidates.retain(|(_, _, known)| *known != Known::Nobody);
        for (i, _, _) in &candidates {
            self.seen[*i] = true;
        }
        let members = self.members;
        let named = candidates
            .into_iter()
            .map(|(i, value, _)| (members[i].name.as_str(), value));
        named.collect()
    }

    /// The single nested object of `class` under any name, with that name; further ones are reported.
    pub(super) fn nested_named(&mut self, class: Class) -> Option<(&'a str, Value<'a>)> {
        let mut found = self.nested_all(class).into_iter();
        let first = found.next();
        for (_, value) in found {
            value.error(
                format!("a second {class}"),
                format!("`{}` can have only one", self.name),
            );
        }
        first
    }

    /// The single nested object of `class` under any name, references resolved.
    pub(super) fn nested(&mut self, class: Class) -> Option<Object<'a>> {
        self.nested_named(class)?.1.plugin(class)
    }

    /// Reports every parameter that was not read.
    pub(super) fn finish(self) {
        for (member, _) in self.members.iter().zip(&self.seen).filter(|(_, seen)| !**seen) {
            self.report_unasked(member);
        }
    }

    fn report_unasked(&self, member: &'a Member) {
        let value = self.value.child(&member.value, &member.name);
        let (key, owner, place) = (&member.name, self.name, &value.path);
        // A broken reference was already reported.
        let Some(target) = value.resolve() else { return };
        if let Known::Supported(class) = vocabulary::lookup(owner)
            && class.without_effect().contains(&key.as_str())
        {
            value.number(Limit::Any);
            return;
        }
        let message = match target.type_name().map(|name| (name, vocabulary::lookup(name))) {
            _ if vocabulary::is_mitsuba_parameter(owner, key) => {
                format!("Mitsuba's parameter `{key}` of `{owner}` at {place} is not supported yet: remove it")
            }
            Some((name, Known::Supported(class))) => {
                let advice = suggest(key, &self.allowed);
                format!("the {class} `{name}` at {place} has no place in `{owner}`: {advice}")
            }
            Some((name, Known::Mitsuba(_) | Known::Nobody)) => return value.report_unknown_type(name),
            // The key is that of a nested object, but the value is no object with a type.
            None if self.allowed.contains(&key.as_str()) => return target.report_untyped(),
            None => {
                let advice = suggest(key, &self.allowed);
                format!("unknown parameter `{key}` of `{owner}` at {place}: {advice}")
            }
        };
        self.value.context.error(member.start, message);
    }
}
