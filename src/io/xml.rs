//! XML documents as trees of elements, read with limits on size and nesting.

use std::path::Path;

use quick_xml::Reader;
use quick_xml::XmlVersion;
use quick_xml::errors::Error;
use quick_xml::escape::{EscapeError, escape};
use quick_xml::events::{BytesStart, Event};

/// Largest file, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Deepest nesting of elements.
const MAX_NESTING: usize = 64;

/// An element: its tag, its attributes in the order of the file, and the elements in it. Text and comments are left out.
#[derive(Debug, Clone, PartialEq)]
pub struct Element {
    pub tag: String,
    pub attributes: Vec<(String, String)>,
    pub children: Vec<Element>,
    /// Line and column of its `<`, counted from 1.
    pub place: (usize, usize),
}

impl Element {
    /// An attribute's value.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Why a file is no XML document: one sentence, and the line and column if it is about a place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    pub place: Option<(usize, usize)>,
    pub message: String,
}

impl Mistake {
    fn at(place: (usize, usize), message: impl Into<String>) -> Self {
        Self {
            place: Some(place),
            message: message.into(),
        }
    }
}

/// Reads the outermost element of a file.
///
/// # Errors
/// The file cannot be read, is larger than 64 MiB, is no text in UTF-8, or is not well-formed.
pub fn read(path: &Path) -> Result<Element, Mistake> {
    let fail = |message| Mistake { place: None, message };
    let unreadable = |e| fail(format!("cannot be read ({e})"));
    let bytes = std::fs::metadata(path).map_err(unreadable)?.len();
    if bytes > MAX_BYTES {
        return Err(fail(format!(
            "has {} MiB, but an XML scene may have {} at most; put meshes and images into files of their own",
            bytes.div_ceil(1 << 20),
            MAX_BYTES >> 20
        )));
    }
    let text = String::from_utf8(super::read_at_most(path, MAX_BYTES).map_err(unreadable)?).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        fail(format!("is no UTF-8 at byte {at}; save it with that encoding"))
    })?;
    parse(&text)
}

/// The text of an XML document with this root, one element a line.
pub fn text(root: &Element) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
    write(root, 0, &mut out);
    out
}

fn write(element: &Element, nesting: usize, out: &mut String) {
    let indent = "    ".repeat(nesting);
    out.push_str(&format!("{indent}<{}", element.tag));
    for (name, value) in &element.attributes {
        out.push_str(&format!(" {name}=\"{}\"", escape(value)));
    }
    if element.children.is_empty() {
        out.push_str("/>\n");
        return;
    }
    out.push_str(">\n");
    element.children.iter().for_each(|child| write(child, nesting + 1, out));
    out.push_str(&format!("{indent}</{}>\n", element.tag));
}

/// The outermost element of a text.
fn parse(text: &str) -> Result<Element, Mistake> {
    let lines = Lines::new(text);
    let mut reader = Reader::from_str(text);
    let mut open: Vec<Element> = Vec::new();
    let mut root = None;
    loop {
        let place = lines.place(reader.buffer_position());
        let event = reader.read_event().map_err(|e| {
            let at = lines.place(reader.error_position());
            Mistake::at(at, format!("this is not well-formed XML ({e})"))
        })?;
        match event {
            Event::Start(_) if open.len() == MAX_NESTING => {
                let message = format!("elements are nested more than {MAX_NESTING} deep; flatten them");
                return Err(Mistake::at(place, message));
            }
            Event::Start(tag) => open.push(element(&tag, place)?),
            Event::Empty(tag) => close(element(&tag, place)?, &mut open, &mut root),
            Event::End(_) => {
                if let Some(done) = open.pop() {
                    close(done, &mut open, &mut root);
                }
            }
            Event::Eof => break,
            Event::Text(_)
            | Event::CData(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::DocType(_)
            | Event::GeneralRef(_) => {}
        }
    }
    match (open.pop(), root) {
        (Some(unclosed), _) => Err(Mistake::at(
            unclosed.place,
            format!("<{0}> is never closed; add </{0}>", unclosed.tag),
        )),
        (None, Some(root)) => Ok(root),
        (None, None) => Err(Mistake::at(
            (1, 1),
            "there is no element; expected <scene version=\"3.0.0\">",
        )),
    }
}

/// Adds a complete element to its parent; the first element without a parent is the root.
fn close(done: Element, open: &mut [Element], root: &mut Option<Element>) {
    match open.last_mut() {
        Some(parent) => parent.children.push(done),
        None => {
            root.get_or_insert(done);
        }
    }
}

fn element(tag: &BytesStart<'_>, place: (usize, usize)) -> Result<Element, Mistake> {
    let mut attributes: Vec<(String, String)> = Vec::new();
    for attribute in tag.attributes() {
        let attribute =
            attribute.map_err(|e| Mistake::at(place, format!("an attribute is not well-formed XML ({e})")))?;
        let value = attribute.normalized_value(XmlVersion::Implicit1_0);
        let value = value.map_err(|e| Mistake::at(place, unreadable(attribute.key.as_ref(), &e)))?;
        attributes.push((attribute.key.as_ref().to_owned(), value.into_owned()));
    }
    Ok(Element {
        tag: tag.name().as_ref().to_owned(),
        attributes,
        children: Vec::new(),
        place,
    })
}

/// Why an attribute's value cannot be read.
fn unreadable(name: &str, error: &Error) -> String {
    match error {
        Error::Escape(EscapeError::UnrecognizedEntity(_, entity)) => {
            format!("the entity &{entity}; in `{name}` is not known; write the character itself")
        }
        Error::Escape(EscapeError::UnterminatedEntity(_)) => {
            format!("an & in `{name}` begins an entity that no semicolon ends; write &amp; for the character")
        }
        error => format!("the attribute `{name}` cannot be read ({error})"),
    }
}

/// Where lines begin.
struct Lines<'a> {
    text: &'a str,
    begins: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let after = text
            .bytes()
            .enumerate()
            .filter(|(_, b)| *b == b'\n')
            .map(|(i, _)| i + 1);
        Self {
            text,
            begins: std::iter::once(0).chain(after).collect(),
        }
    }

    /// Line and column of a byte, counted from 1.
    fn place(&self, at: u64) -> (usize, usize) {
        let at = at as usize;
        let line = self.begins.partition_point(|begin| *begin <= at).max(1);
        let begin = self.begins[line - 1];
        let column = self.text.get(begin..at).map_or(0, |part| part.chars().count());
        (line, column + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_know_their_places_and_values() {
        let text = "<?xml version='1.0'?>\n<!-- no -->\n<scene version=\"3.0.0\">\n  é<float name='a' value=\"1 &lt; 2\"/>\n</scene>\n";
        let root = parse(text).expect("well-formed");
        assert_eq!((root.tag.as_str(), root.place), ("scene", (3, 1)));
        assert_eq!(root.attribute("version"), Some("3.0.0"));
        let [child] = &root.children[..] else {
            panic!("one child")
        };
        assert_eq!((child.place, child.attribute("value")), ((4, 4), Some("1 < 2")));
        assert_eq!(child.attribute("b"), None);
    }

    #[test]
    fn a_document_that_is_written_is_read_again() {
        let text =
            text(&parse("<a b=\"1 &lt; &quot;2&quot; &amp; é'\"><c/><d e=''><f/></d></a>").expect("well-formed"));
        assert_eq!(
            text,
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<a b=\"1 &lt; &quot;2&quot; &amp; é&apos;\">\n    <c/>\n    <d e=\"\">\n        \
             <f/>\n    </d>\n</a>\n"
        );
        assert_eq!(super::text(&parse(&text).expect("well-formed")), text);
    }

    #[test]
    fn mistakes_have_places() {
        for (text, place, part) in [
            ("<scene>\n<a>\n</scene>", (3, 1), "not well-formed"),
            ("<scene>\n  <a>", (2, 3), "never closed"),
            ("", (1, 1), "no element"),
            ("<scene a='1' a='2'/>", (1, 1), "not well-formed"),
            (
                "<scene>\n<x a='&bomb;'/></scene>",
                (2, 1),
                "the entity &bomb; in `a` is not known; write the character itself",
            ),
            ("<scene b='a & b'/>", (1, 1), "an & in `b` begins an entity"),
            ("<scene b='&#x110000;'/>", (1, 1), "the attribute `b` cannot be read"),
        ] {
            let mistake = parse(text).expect_err(text);
            assert!(mistake.message.contains(part), "{text}: {mistake:?}");
            assert_eq!(mistake.place, Some(place), "{text}: {mistake:?}");
        }
        let deep = "<a>".repeat(MAX_NESTING + 1);
        assert!(parse(&deep).expect_err("deep").message.contains("nested"));
    }
}
