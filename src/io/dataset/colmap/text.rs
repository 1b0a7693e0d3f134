//! The text files: one record a line, `#` begins a comment, an image takes two lines.

use std::str::FromStr;

use super::{Camera, Cameras, ImageRecord, Parsed};

/// The words of one line.
struct Words<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Words<'a> {
    fn word(&mut self, what: &str) -> Parsed<&'a str> {
        let text = self.rest.trim_start();
        let (word, rest) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
        self.rest = rest;
        if word.is_empty() {
            return Err(format!("line {} ends early, expected {what}", self.line));
        }
        Ok(word)
    }

    fn number<T: FromStr>(&mut self, what: &str) -> Parsed<T> {
        let word = self.word(what)?;
        word.parse()
            .map_err(|_| format!("line {} has `{}`, expected {what}", self.line, word.escape_debug()))
    }

    fn numbers<const N: usize>(&mut self, what: &str) -> Parsed<[f64; N]> {
        let mut values = [0.0; N];
        for v in &mut values {
            *v = self.number(what)?;
        }
        Ok(values)
    }
}

/// Numbered lines.
fn lines(bytes: &[u8]) -> Parsed<impl Iterator<Item = Words<'_>>> {
    let text =
        std::str::from_utf8(bytes).map_err(|_| "is not text in UTF-8, expected a COLMAP text file".to_owned())?;
    Ok(text.lines().enumerate().map(|(i, line)| Words {
        rest: line.trim(),
        line: i + 1,
    }))
}

fn is_record(words: &Words<'_>) -> bool {
    !words.rest.is_empty() && !words.rest.starts_with('#')
}

pub(super) fn cameras(bytes: &[u8]) -> Parsed<Cameras> {
    let mut cameras = Cameras::new();
    for mut line in lines(bytes)?.filter(is_record) {
        let id = line.number("a camera's number")?;
        let model = line.word("a camera model")?.to_owned();
        let (width, height) = (line.number("a width")?, line.number("a height")?);
        let mut parameters = Vec::new();
        while !line.rest.trim_start().is_empty() {
            parameters.push(line.number("a camera's parameter")?);
        }
        cameras.insert(
            id,
            Camera {
                model,
                width,
                height,
                parameters,
            },
        );
    }
    Ok(cameras)
}

pub(super) fn images(bytes: &[u8]) -> Parsed<Vec<ImageRecord>> {
    let mut images = Vec::new();
    let mut lines = lines(bytes)?;
    while let Some(mut line) = lines.next() {
        if !is_record(&line) {
            continue;
        }
        let _id: u32 = line.number("an image's number")?;
        let rotation = line.numbers("a quaternion w x y z")?;
        let translation = line.numbers("a translation")?;
        let camera = line.number("a camera's number")?;
        let name = line.rest.trim().to_owned();
        if name.is_empty() {
            return Err(format!("line {} ends early, expected the image's name", line.line));
        }
        images.push(ImageRecord {
            rotation,
            translation,
            camera,
            name,
        });
        // The image's observations, which may be an empty line.
        lines.next();
    }
    Ok(images)
}

pub(super) fn points(bytes: &[u8]) -> Parsed<Vec<[f32; 3]>> {
    let mut points = Vec::new();
    for mut line in lines(bytes)?.filter(is_record) {
        let _id: u64 = line.number("a point's number")?;
        let position = line.numbers::<3>("a point's coordinates")?.map(|v| v as f32);
        if position.iter().any(|v| !v.is_finite()) {
            return Err(format!("line {} has a point that is not finite", line.line));
        }
        points.push(position);
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_must_be_finite_number_by_number() {
        assert_eq!(points(b"1 2 3 4.5 9 9 9 0"), Ok(vec![[2.0, 3.0, 4.5]]));
        for line in ["1 inf 3 4", "1 2 NaN 4", "1 2 3 1e300"] {
            assert_eq!(
                points(line.as_bytes()),
                Err("line 1 has a point that is not finite".into()),
                "{line}"
            );
        }
    }
}
