//! A JSON Schema of scene files, generated from the definitions that readers use.
//!
//! It describes each value by itself. Conditions between values (whether a path exists, whether a grid has the
//! required channels) are checked by the program alone.

use serde_json::{Map, Value, json};

use super::definitions::{BLOCKS, Definition, Form, VARIANTS, plugins};
use super::reader::Limit;
use super::vocabulary::Class;

/// All classes that have types.
const CLASSES: &[Class] = &[
    Class::Bsdf,
    Class::Dataset,
    Class::Emitter,
    Class::Film,
    Class::Filter,
    Class::Integrator,
    Class::Medium,
    Class::Phase,
    Class::Sampler,
    Class::Sensor,
    Class::Shape,
    Class::Spectrum,
    Class::Splats,
    Class::Texture,
    Class::Volume,
];

/// The schema (draft 2020-12).
pub fn schema() -> Value {
    let mut defs = Map::new();
    for class in CLASSES {
        let of_class = plugins().filter(|(c, _)| c == class);
        let mut kinds: Vec<Value> = of_class.map(|(_, definition)| typed(definition, *class)).collect();
        kinds.push(json!({ "$ref": "#/$defs/reference" }));
        defs.insert(key(*class), json!({ "anyOf": kinds }));
    }
    for (name, definition) in BLOCKS {
        defs.insert((*name).to_owned(), object(definition, None));
    }
    for (group, kinds) in VARIANTS {
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name).collect();
        let mut choices = vec![json!({ "enum": names })];
        choices.extend(kinds.iter().map(|kind| object(kind, Some(kind.name))));
        defs.insert((*group).to_owned(), json!({ "anyOf": choices }));
    }
    defs.insert("reference".into(), reference());
    defs.insert("space".into(), space());
    defs.insert("plane".into(), plane());
    let objects: Vec<Value> = CLASSES.iter().map(|class| to_class(*class)).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "a scene of prbopt",
        "type": "object",
        "properties": {
            "$schema": { "type": "string" },
            "type": { "const": "scene" },
            "id": { "type": "string" },
            "optimize": { "$ref": "#/$defs/optimize" },
        },
        "additionalProperties": { "anyOf": objects },
        "$defs": defs,
    })
}

fn key(class: Class) -> String {
    class.to_string().replace(' ', "_")
}

fn to_class(class: Class) -> Value {
    json!({ "$ref": format!("#/$defs/{}", key(class)) })
}

fn to_block(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{}", name.replace(' ', "%20")) })
}

/// An object of a class, whose type is the definition's name.
fn typed(definition: &Definition, class: Class) -> Value {
    let mut object = object(definition, Some(definition.name));
    for key in class.without_effect() {
        let known = &mut object["properties"][key];
        if known.is_null() {
            *known = number(Limit::Any);
        }
    }
    object
}

fn object(definition: &Definition, name: Option<&str>) -> Value {
    let mut properties = Map::new();
    let mut required: Vec<&str> = Vec::new();
    if let Some(name) = name {
        properties.insert("type".into(), json!({ "const": name }));
        properties.insert("id".into(), json!({ "type": "string" }));
        required.push("type");
    }
    for parameter in definition.parameters {
        properties.insert(parameter.key.into(), form(&parameter.form));
        if parameter.required {
            required.push(parameter.key);
        }
    }
    let nested: Vec<Value> = definition.nested.iter().map(|class| to_class(*class)).collect();
    let others = if nested.is_empty() {
        json!(false)
    } else {
        json!({ "anyOf": nested })
    };
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": others,
    })
}

fn reference() -> Value {
    json!({
        "type": "object",
        "properties": { "type": { "const": "ref" }, "id": { "type": "string" } },
        "required": ["type", "id"],
        "additionalProperties": false,
    })
}

fn number(limit: Limit) -> Value {
    match limit {
        Limit::Any => json!({ "type": "number" }),
        Limit::Positive => json!({ "type": "number", "exclusiveMinimum": 0 }),
        Limit::NonNegative => json!({ "type": "number", "minimum": 0 }),
        Limit::Light => json!({ "type": "number", "minimum": 0, "maximum": 1e30 }),
        Limit::Between(low, high) => json!({ "type": "number", "exclusiveMinimum": low, "exclusiveMaximum": high }),
        Limit::Within(low, high) => json!({ "type": "number", "minimum": low, "maximum": high }),
    }
}

fn list(item: Value, count: usize) -> Value {
    json!({ "type": "array", "items": item, "minItems": count, "maxItems": count })
}

fn color(limit: Limit) -> Vec<Value> {
    vec![number(limit), list(number(limit), 3), to_class(Class::Spectrum)]
}

fn form(form: &Form) -> Value {
    match *form {
        Form::Number(limit) => number(limit),
        Form::Integer(low, high) => json!({ "type": "integer", "minimum": low, "maximum": high }),
        Form::Boolean => json!({ "type": "boolean" }),
        Form::Words(words) => json!({ "enum": words }),
        Form::Text => json!({ "type": "string" }),
        Form::File => json!({ "type": "string", "minLength": 1 }),
        Form::Vector(count) => list(number(Limit::Any), count),
        Form::Only(text) => json!({ "const": serde_json::from_str::<Value>(text).unwrap_or_default() }),
        Form::Space => json!({ "$ref": "#/$defs/space" }),
        Form::Plane => json!({ "$ref": "#/$defs/plane" }),
        Form::Color(limit) => json!({ "anyOf": color(limit) }),
        Form::Values(limit) => json!({ "anyOf": values(limit) }),
        Form::Volume(limit) => {
            let mut choices = values(limit);
            choices.push(to_class(Class::Volume));
            json!({ "anyOf": choices })
        }
        Form::Resolution(axes) => {
            let side = json!({ "type": "integer", "minimum": 1, "maximum": 65_536 });
            let all = list(side.clone(), axes);
            if axes == 3 {
                json!({ "anyOf": [side, all] })
            } else {
                all
            }
        }
        Form::Bounds => list(json!({ "type": ["number", "null"] }), 2),
        Form::Object(class) => to_class(class),
        Form::Block(name) | Form::Variant(name) => to_block(name),
        Form::List(item) => json!({ "type": "array", "items": self::form(item) }),
        Form::Map(item) => json!({ "type": "object", "additionalProperties": self::form(item), "minProperties": 1 }),
        Form::OneOf(forms) => json!({ "anyOf": forms.iter().map(self::form).collect::<Vec<_>>() }),
    }
}

/// A number, one number per channel, or a colour.
fn values(limit: Limit) -> Vec<Value> {
    let channels = json!({ "type": "array", "items": number(limit), "minItems": 1 });
    vec![number(limit), channels, to_class(Class::Spectrum)]
}

/// An object with exactly one of some members.
fn one_of(members: &[(&str, Value)]) -> Value {
    let each = members.iter().map(|(name, value)| {
        json!({
            "type": "object",
            "properties": { *name: value },
            "required": [name],
            "additionalProperties": false,
        })
    });
    json!({ "anyOf": each.collect::<Vec<_>>() })
}

fn matrix(size: usize) -> Value {
    list(list(number(Limit::Any), size), size)
}

fn space() -> Value {
    let vector = list(number(Limit::Any), 3);
    let operation = one_of(&[
        ("translate", vector.clone()),
        ("scale", json!({ "anyOf": [number(Limit::Any), vector] })),
        ("rotate", to_block("rotate")),
        ("look_at", to_block("look_at")),
        ("matrix", matrix(4)),
    ]);
    let operations = json!({ "type": "array", "items": operation });
    json!({ "anyOf": [matrix(4), operations, operation] })
}

fn plane() -> Value {
    let vector = json!({ "type": "array", "items": number(Limit::Any), "minItems": 2, "maxItems": 3 });
    let matrices = json!({ "anyOf": [matrix(3), matrix(4)] });
    let operation = one_of(&[
        ("translate", vector.clone()),
        ("scale", json!({ "anyOf": [number(Limit::Any), vector] })),
        ("rotate", to_block("rotate in the plane")),
        ("matrix", matrices.clone()),
    ]);
    let operations = json!({ "type": "array", "items": operation });
    json!({ "anyOf": [matrices, operations, operation] })
}
