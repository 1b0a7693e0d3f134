//! Whether a JPEG file is whole: its decoder fills in what a shorter one lacks, without a word.

/// Markers, the bytes behind 0xff (ITU-T T.81, table B.1).
mod marker {
    pub(super) const STUFFED: u8 = 0x00;
    pub(super) const STANDS_ALONE: u8 = 0x01;
    pub(super) const RESTARTS: std::ops::RangeInclusive<u8> = 0xd0..=0xd7;
    pub(super) const START: u8 = 0xd8;
    pub(super) const END: u8 = 0xd9;
    pub(super) const FILL: u8 = 0xff;
}

/// Whether the first image of the file is followed by the marker of its end.
pub(super) fn is_whole(bytes: &[u8]) -> bool {
    let mut at = 0;
    loop {
        // Within a scan, up to the next marker; between segments the marker is here.
        let Some(skipped) = bytes[at.min(bytes.len())..].iter().position(|byte| *byte == 0xff) else {
            return false;
        };
        at += skipped + 1;
        let Some(&kind) = bytes.get(at) else { return false };
        at += 1;
        match kind {
            marker::END => return true,
            marker::FILL => at -= 1,
            marker::STUFFED | marker::STANDS_ALONE | marker::START => {}
            kind if marker::RESTARTS.contains(&kind) => {}
            // Other segments have a length, which counts itself; that of a scan is only of its header.
            _ => {
                let Some(length) = bytes[at..].first_chunk::<2>() else {
                    return false;
                };
                at += usize::from(u16::from_be_bytes(*length));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image with a thumbnail in a segment of its own, a restart, a stuffed byte, fill bytes, and something behind its end.
    #[test]
    fn the_end_of_the_image_itself_is_looked_for() {
        let thumbnail = [0xff, 0xd8, 0xff, 0xd9];
        let mut whole = vec![0xff, 0xd8, 0xff, 0xe1, 0, 6];
        whole.extend(thumbnail);
        whole.extend([
            0xff,
            0xff,
            0xda,
            0,
            3,
            1,
            7,
            0xff,
            0x00,
            9,
            0xff,
            0xd3,
            5,
            0xff,
            marker::END,
        ]);
        let end = whole.len();
        whole.extend([1, 2, 0xff, 0xda]);
        assert!(is_whole(&whole) && is_whole(&whole[..end]));
        for length in 0..end {
            assert!(!is_whole(&whole[..length]), "{length}");
        }
    }
}
