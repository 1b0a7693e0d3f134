//! A little-endian reader, sequential from the front. Allocation is bounded by the file's length.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

/// The result of parsing; its error is the rest of a sentence that begins with the file's name.
pub(super) type Parsed<T> = Result<T, String>;

#[derive(Debug)]
pub(super) struct Stream {
    file: BufReader<File>,
    at: u64,
    length: u64,
}

impl Stream {
    pub(super) fn new(file: File, length: u64) -> Self {
        Self {
            file: BufReader::with_capacity(1 << 18, file),
            at: 0,
            length,
        }
    }

    /// Bytes of the whole file.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Position of the next byte.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Continues at another position.
    pub(super) fn seek(&mut self, at: u64) -> Parsed<()> {
        if at > self.length {
            return Err(format!(
                "points to byte {at}, but is {} bytes long: it is truncated or damaged",
                self.length
            ));
        }
        self.file.seek(SeekFrom::Start(at)).map_err(unreadable)?;
        self.at = at;
        Ok(())
    }

    pub(super) fn skip(&mut self, count: u64) -> Parsed<()> {
        self.claim(count)?;
        self.file.seek_relative(count as i64).map_err(unreadable)?;
        self.at += count;
        Ok(())
    }

    pub(super) fn bytes(&mut self, count: u64) -> Parsed<Vec<u8>> {
        self.claim(count)?;
        let mut bytes = vec![0; count as usize];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        self.claim(N as u64)?;
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn u8(&mut self) -> Parsed<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u32(&mut self) -> Parsed<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn i32(&mut self) -> Parsed<i32> {
        self.array().map(i32::from_le_bytes)
    }

    pub(super) fn i64(&mut self) -> Parsed<i64> {
        self.array().map(i64::from_le_bytes)
    }

    pub(super) fn f32(&mut self) -> Parsed<f32> {
        self.array().map(f32::from_le_bytes)
    }

    pub(super) fn f64s<const N: usize>(&mut self) -> Parsed<[f64; N]> {
        let mut values = [0.0; N];
        for value in &mut values {
            *value = self.array().map(f64::from_le_bytes)?;
        }
        Ok(values)
    }

    /// Text preceded by its length.
    pub(super) fn text(&mut self) -> Parsed<String> {
        let length = self.u32()?;
        let bytes = self.bytes(u64::from(length))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn claim(&self, count: u64) -> Parsed<()> {
        if count > self.length - self.at {
            return Err(format!(
                "ends at byte {}, expected {count} more from byte {} on: it is truncated or damaged",
                self.length, self.at
            ));
        }
        Ok(())
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Parsed<()> {
        self.file.read_exact(bytes).map_err(unreadable)?;
        self.at += bytes.len() as u64;
        Ok(())
    }
}

fn unreadable(e: std::io::Error) -> String {
    format!("cannot be read: {e}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_file_is_known_wherever_reading_stands() {
        let mut file = tempfile::tempfile().expect("a temporary file");
        std::io::Write::write_all(&mut file, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]).expect("writable");
        let mut stream = Stream::new(file, 10);
        stream.seek(0).expect("the beginning");
        assert_eq!((stream.u8(), stream.at(), stream.length()), (Ok(0), 1, 10));
        stream.skip(3).expect("there are nine");
        assert_eq!((stream.array(), stream.at()), (Ok([4, 5]), 6));
        let short =
            |count, at| format!("ends at byte 10, expected {count} more from byte {at} on: it is truncated or damaged");
        assert_eq!(stream.bytes(5), Err(short(5, 6)));
        assert_eq!(stream.skip(5), Err(short(5, 6)));
        assert_eq!(stream.array::<8>(), Err(short(8, 6)));
        assert_eq!((stream.bytes(4), stream.at()), (Ok(vec![6, 7, 8, 9]), 10));
        assert_eq!(
            (stream.bytes(0), stream.skip(0), stream.u8()),
            (Ok(vec![]), Ok(()), Err(short(1, 10)))
        );
        stream.seek(3).expect("within");
        assert_eq!((stream.i32(), stream.at()), (Ok(0x0605_0403), 7));
        stream.seek(10).expect("the end");
        let beyond = stream.seek(11).expect_err("beyond the end");
        assert!(
            beyond.starts_with("points to byte 11, but is 10 bytes long"),
            "{beyond}"
        );
        // Text of a length that the file does not have.
        stream.seek(6).expect("within");
        assert_eq!(stream.text(), Err(short(0x0908_0706, 10)));
    }
}
