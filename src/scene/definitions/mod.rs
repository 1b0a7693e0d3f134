//! The parameters of all objects and blocks of a scene file. Readers take limits from here, unknown parameters are
//! detected by it, and the JSON schema is generated from it.

mod blocks;
mod bsdfs;
mod plugins;

use super::film::MAX_SIDE;
use super::reader::Limit;
use super::sampler::MAX_SPP;
use super::vocabulary::Class;
pub(super) use blocks::{BLOCKS, VARIANTS};

/// The form of a value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    Number(Limit),
    /// An integer in a closed interval.
    Integer(u64, u64),
    Boolean,
    Words(&'static [&'static str]),
    Text,
    File,
    /// This many numbers.
    Vector(usize),
    /// Only this JSON value is supported.
    Only(&'static str),
    /// A transform of space, or of the texture plane.
    Space,
    Plane,
    /// A number, three numbers, or an object that is a colour, such as an `rgb`.
    Color(Limit),
    /// A number, one per channel, or an object that is a colour.
    Values(Limit),
    /// A volume, or a shorthand for one.
    Volume(Limit),
    /// Texels along two or three axes, or one number for all three.
    Resolution(usize),
    /// Two numbers, or null for no bound.
    Bounds,
    /// An object of a class, or a reference to one.
    Object(Class),
    /// A block by its key in [`BLOCKS`].
    Block(&'static str),
    /// One of the kinds of a group of [`VARIANTS`].
    Variant(&'static str),
    List(&'static Form),
    /// An object with arbitrary member names.
    Map(&'static Form),
    OneOf(&'static [Form]),
}

/// A parameter.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) key: &'static str,
    pub(super) form: Form,
    pub(super) required: bool,
}

/// An object or a block.
#[derive(Debug)]
pub(super) struct Definition {
    /// Its type, or what it is called in messages.
    pub(super) name: &'static str,
    pub(super) parameters: &'static [Parameter],
    /// Classes whose objects may be nested in it under any name.
    pub(super) nested: &'static [Class],
}

impl Definition {
    /// The form of a parameter.
    ///
    /// # Panics
    /// If no parameter has that name: the reader and the definition disagree.
    pub(super) fn form(&self, key: &str) -> Form {
        let found = self.parameters.iter().find(|parameter| parameter.key == key);
        found
            .unwrap_or_else(|| panic!("`{}` defines no parameter `{key}`", self.name))
            .form
    }
}

const fn may(key: &'static str, form: Form) -> Parameter {
    Parameter {
        key,
        form,
        required: false,
    }
}

const fn must(key: &'static str, form: Form) -> Parameter {
    Parameter {
        key,
        form,
        required: true,
    }
}

const fn plain(name: &'static str, parameters: &'static [Parameter]) -> Definition {
    Definition {
        name,
        parameters,
        nested: &[],
    }
}

const ANY: Form = Form::Number(Limit::Any);
const POSITIVE: Form = Form::Number(Limit::Positive);
const NOT_NEGATIVE: Form = Form::Number(Limit::NonNegative);
const SIDE: Form = Form::Integer(1, MAX_SIDE as u64);
const COUNT: Form = Form::Integer(0, u32::MAX as u64);
const SAMPLES: Form = Form::Integer(1, MAX_SPP as u64);
/// A number of samples of one kind (of lights, of the BSDF), which may be zero.
const NO_OR_MORE_SAMPLES: Form = Form::Integer(0, MAX_SPP as u64);
const BACKDROP: Form = Form::OneOf(&[
    Form::Words(&["none", "white", "black", "random"]),
    Form::Color(Limit::Any),
]);

/// The definition of a supported type.
///
/// # Panics
/// If a type of the vocabulary has no definition.
pub(super) fn plugin(class: Class, name: &str) -> &'static Definition {
    let found = plugins().find(|(c, definition)| *c == class && definition.name == name);
    &found.unwrap_or_else(|| panic!("the {class} `{name}` is not defined")).1
}

/// All objects with a type, by class.
pub(super) fn plugins() -> impl Iterator<Item = &'static (Class, Definition)> {
    [plugins::PLUGINS, bsdfs::BSDFS].into_iter().flatten()
}

/// The definition of a block.
///
/// # Panics
/// If there is none.
pub(super) fn block(key: &str) -> &'static Definition {
    let found = BLOCKS.iter().find(|(k, _)| *k == key);
    &found.unwrap_or_else(|| panic!("the block `{key}` is not defined")).1
}

/// The definitions of a group of variants.
///
/// # Panics
/// If there is none.
pub(super) fn variants(group: &str) -> &'static [Definition] {
    let found = VARIANTS.iter().find(|(g, _)| *g == group);
    found
        .unwrap_or_else(|| panic!("the variants of `{group}` are not defined"))
        .1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::vocabulary::{self, Known};

    #[test]
    fn every_supported_type_is_defined_and_no_other() {
        for (class, definition) in plugins() {
            assert_eq!(
                vocabulary::lookup(definition.name),
                Known::Supported(*class),
                "{}",
                definition.name
            );
        }
        let classes: Vec<Class> = plugins().map(|(class, _)| *class).collect();
        for class in classes {
            for name in vocabulary::supported(class) {
                plugin(class, name);
            }
        }
    }

    #[test]
    fn no_parameter_is_defined_twice() {
        let variants = VARIANTS.iter().flat_map(|(_, all)| all.iter());
        let all = plugins()
            .map(|(_, d)| d)
            .chain(BLOCKS.iter().map(|(_, d)| d))
            .chain(variants);
        for definition in all {
            for (i, parameter) in definition.parameters.iter().enumerate() {
                assert!(
                    definition.parameters[..i].iter().all(|p| p.key != parameter.key),
                    "{}.{}",
                    definition.name,
                    parameter.key
                );
            }
        }
    }
}
