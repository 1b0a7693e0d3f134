//! A colour: a number, `[r, g, b]`, or `{"type": "rgb", "value": …}`.

use super::reader::{Limit, Value};
use super::vocabulary::Class;

/// Red, green and blue.
pub(super) fn read(value: &Value<'_>) -> Option<[f32; 3]> {
    read_within(value, Limit::Any)
}

/// Red, green and blue, each of which obeys `limit`.
pub(super) fn read_within(value: &Value<'_>, limit: Limit) -> Option<[f32; 3]> {
    if value.is_number() {
        return Some([value.number(limit)? as f32; 3]);
    }
    if value.is_list() {
        let [r, g, b] = value.list_of::<3>()?.map(|item| item.number(limit));
        return Some([r?, g?, b?].map(|x| x as f32));
    }
    let mut object = value.plugin(Class::Spectrum)?;
    let inner = object.require("value", "a number or [r, g, b]");
    object.finish();
    let inner = inner?;
    if inner.is_object() {
        inner.error("a colour stands inside a colour", "give a number or [r, g, b]");
        return None;
    }
    read_within(&inner, limit)
}
