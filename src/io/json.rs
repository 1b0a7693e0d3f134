//! JSON formatted for reading: a value that fits a line is not broken.

use serde_json::Value;

/// Largest width of a line.
const WIDTH: usize = 110;

/// The text of `value`, ending in a newline.
pub fn pretty(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value, 0, 0);
    text.push('\n');
    text
}

/// Appends `value`, whose line is indented by `indent` and already `column` wide.
fn write(text: &mut String, value: &Value, indent: usize, column: usize) {
    let line = inline(value);
    // The outermost object is always broken into lines.
    if (indent > 0 && column + line.len() <= WIDTH) || line.len() <= 2 {
        text.push_str(&line);
        return;
    }
    let inner = indent + 4;
    let newline =
        |text: &mut String, indent: usize| text.extend(std::iter::once('\n').chain(std::iter::repeat_n(' ', indent)));
    match value {
        Value::Object(members) => {
            text.push('{');
            for (i, (key, member)) in members.iter().enumerate() {
                text.push_str(if i > 0 { "," } else { "" });
                newline(text, inner);
                let key = format!("{}: ", Value::from(key.as_str()));
                text.push_str(&key);
                write(text, member, inner, inner + key.len());
            }
            newline(text, indent);
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (i, item) in items.iter().enumerate() {
                text.push_str(if i > 0 { "," } else { "" });
                newline(text, inner);
                write(text, item, inner, inner);
            }
            newline(text, indent);
            text.push(']');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

/// `value` on one line.
fn inline(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Object(members) if members.is_empty() => "{}".into(),
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(key, v)| format!("{}: {}", Value::from(key.as_str()), inline(v)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn short_parts_stay_on_a_line_and_the_text_means_the_same() {
        let value = json!({"a": [1, 2.5, "x\"y"], "b": {"c": {}, "d": vec![0.125; 40]}, "e": null});
        let text = pretty(&value);
        assert!(text.contains("    \"a\": [1, 2.5, \"x\\\"y\"],\n"), "{text}");
        assert!(text.lines().all(|line| line.len() <= WIDTH + 1), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), value);
    }

    /// A value that exactly fills the line stays on it; with one more character it is broken, and its parts only if
    /// they are too long.
    #[test]
    fn lines_are_filled_to_their_width() {
        let text = |n: usize| "x".repeat(n);
        let short = pretty(&json!({"a": [text(97)], "b": {}}));
        assert_eq!(
            short,
            format!("{{\n    \"a\": [\"{}\"],\n    \"b\": {{}}\n}}\n", text(97))
        );
        assert_eq!(short.lines().map(str::len).max(), Some(111), "110 and a comma");
        let long = pretty(&json!({"a": [text(98), 1], "b": []}));
        let expected = format!(
            "{{\n    \"a\": [\n        \"{}\",\n        1\n    ],\n    \"b\": []\n}}\n",
            text(98)
        );
        assert_eq!(long, expected);
        let nested = pretty(&json!({"a": {"b": [[text(94)], [text(95)]]}}));
        let expected = format!(
            "{{\n    \"a\": {{\n        \"b\": [\n            [\"{}\"],\n            [\n                \
             \"{}\"\n            ]\n        ]\n    }}\n}}\n",
            text(94),
            text(95)
        );
        assert_eq!(nested, expected);
        assert_eq!(
            pretty(&json!({"a": 1})),
            "{\n    \"a\": 1\n}\n",
            "the outermost is always broken"
        );
        assert_eq!(
            [pretty(&json!([1])), pretty(&json!([10]))],
            ["[\n    1\n]\n", "[\n    10\n]\n"]
        );
        assert_eq!(
            [pretty(&json!({})), pretty(&json!([])), pretty(&json!("x"))],
            ["{}\n", "[]\n", "\"x\"\n"]
        );
    }
}
