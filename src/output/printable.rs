//! Text of files and of the system, made fit for a terminal: it may hold control sequences, or be endless.

/// The largest number of characters of a line.
const LONGEST: usize = 2000;

/// `text` with control characters other than the ends of lines escaped, and with `…` for the middle of lines that are too
/// long.
pub fn printable(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| escaped(&shortened(line))).collect();
    lines.join("\n")
}

fn shortened(line: &str) -> String {
    let half = LONGEST / 2;
    if line.chars().nth(LONGEST).is_none() {
        return line.to_owned();
    }
    let begin = line.char_indices().nth(half).map_or(line.len(), |(at, _)| at);
    let end = line.char_indices().nth_back(half - 1).map_or(0, |(at, _)| at);
    format!("{} … {}", &line[..begin], &line[end..])
}

fn escaped(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    for c in line.chars() {
        if c.is_control() || is_direction(c) {
            text.extend(c.escape_default());
        } else {
            text.push(c);
        }
    }
    text
}

/// Whether a character changes the direction of the text after it, so that what is read is not what stands there.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_lines_are_kept() {
        assert_eq!(
            printable("a\u{1b}[31mb\u{7}\r\nc\u{9b}\t×"),
            "a\\u{1b}[31mb\\u{7}\\r\nc\\u{9b}\\t×"
        );
        assert_eq!(printable("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(printable("as it is: `…`, 2³²\n"), "as it is: `…`, 2³²\n");
    }

    #[test]
    fn long_lines_lose_their_middle() {
        let whole = format!("a{}z", "×".repeat(LONGEST - 2));
        assert_eq!(printable(&whole), whole);
        let cut = printable(&format!("first\n{whole}×y\nlast"));
        let lines: Vec<&str> = cut.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[2]), (3, "first", "last"));
        assert_eq!(lines[1].chars().count(), LONGEST + 3);
        assert!(lines[1].starts_with("a×") && lines[1].ends_with("z×y") && lines[1].contains("× … ×"));
    }
}
