//! Arrays of values as stored in the file: with or without the inactive ones, whole or half precision, and compressed
//! by zlib or Blosc.

use flate2::{Decompress, FlushDecompress, Status};

use super::stream::{Parsed, Stream};

/// OpenVDB's compression flags.
pub(super) const ZIP: u32 = 1;
pub(super) const ACTIVE_ONLY: u32 = 2;
const BLOSC: u32 = 4;

/// Values of the byte before an array, which describes its inactive values.
pub(super) mod inactive {
    pub(in crate::io::vdb) const BACKGROUND: u8 = 0;
    pub(super) const MINUS_BACKGROUND: u8 = 1;
    pub(super) const ONE: u8 = 2;
    /// A mask chooses between the background and its negative.
    pub(super) const MASK: u8 = 3;
    /// A mask chooses between the background and a stored value.
    pub(super) const MASK_AND_ONE: u8 = 4;
    /// A mask chooses between two stored values.
    pub(super) const MASK_AND_TWO: u8 = 5;
    /// All values are stored.
    pub(super) const STORED: u8 = 6;
}

/// The storage of all values of a tree.
pub(super) struct Coding {
    pub(super) compression: u32,
    pub(super) half: bool,
    pub(super) background: f32,
}

/// Whether bit `i` of a mask is set.
pub(super) fn is_on(mask: &[u8], i: usize) -> bool {
    mask[i / 8] >> (i % 8) & 1 == 1
}

impl Coding {
    /// Reads one value per bit of the mask `active`.
    pub(super) fn values(&self, stream: &mut Stream, active: &[u8]) -> Parsed<Vec<f32>> {
        let count = 8 * active.len();
        let rule = stream.u8()?;
        // The inactive values: `off` where the mask that follows has a zero bit, `on` where it has a one.
        let [mut off, mut on] = match rule {
            inactive::BACKGROUND => [self.background; 2],
            inactive::MINUS_BACKGROUND..=inactive::STORED => [-self.background, self.background],
            _ => {
                return Err(format!(
                    "has values with the flag {rule}, expected 0 to 6: it is damaged"
                ));
            }
        };
        if matches!(rule, inactive::ONE | inactive::MASK_AND_ONE | inactive::MASK_AND_TWO) {
            off = stream.f32()?;
        }
        if rule == inactive::MASK_AND_TWO {
            on = stream.f32()?;
        }
        let masked = matches!(rule, inactive::MASK | inactive::MASK_AND_ONE | inactive::MASK_AND_TWO);
        let choice = if masked {
            Some(stream.bytes(active.len() as u64)?)
        } else {
            None
        };
        if self.compression & ACTIVE_ONLY == 0 || rule == inactive::STORED {
            return self.stored(stream, count);
        }
        let active_count = active.iter().map(|byte| byte.count_ones() as usize).sum();
        let mut stored = self.stored(stream, active_count)?.into_iter();
        let value = |i: usize| {
            let inactive = if choice.as_ref().is_some_and(|mask| is_on(mask, i)) {
                on
            } else {
                off
            };
            if is_on(active, i) {
                stored.next().unwrap_or(inactive)
            } else {
                inactive
            }
        };
        Ok((0..count).map(value).collect())
    }

    /// Reads an array of `count` values.
    fn stored(&self, stream: &mut Stream, count: usize) -> Parsed<Vec<f32>> {
        if self.half {
            // OpenVDB writes no bytes, not even a size, for zero halves.
            let bytes = if count == 0 {
                Vec::new()
            } else {
                self.unpacked(stream, 2 * count)?
            };
            let (values, _) = bytes.as_chunks();
            return Ok(values.iter().map(|b| half::f16::from_le_bytes(*b).to_f32()).collect());
        }
        let bytes = self.unpacked(stream, 4 * count)?;
        let (values, _) = bytes.as_chunks();
        Ok(values.iter().map(|b| f32::from_le_bytes(*b)).collect())
    }

    /// Reads an array that has `length` bytes after decompression.
    fn unpacked(&self, stream: &mut Stream, length: usize) -> Parsed<Vec<u8>> {
        if self.compression & (ZIP | BLOSC) == 0 {
            return stream.bytes(length as u64);
        }
        let packed = stream.i64()?;
        // A size that is not positive marks an array stored uncompressed.
        if packed <= 0 {
            if packed.unsigned_abs() != length as u64 {
                return Err(wrong_size(packed.unsigned_abs(), length));
            }
            return stream.bytes(length as u64);
        }
        let packed = stream.bytes(packed as u64)?;
        let mut bytes = vec![0; length];
        if self.compression & BLOSC != 0 {
            unpack_blosc(&packed, &mut bytes)?;
        } else {
            inflate(&packed, &mut bytes)?;
        }
        Ok(bytes)
    }
}

fn wrong_size(found: u64, expected: usize) -> String {
    format!("has an array of {found} bytes, expected {expected}: it is damaged")
}

fn wrong_inflated(expected: usize) -> String {
    format!("has an array that zlib does not decompress to {expected} bytes: it is damaged")
}

/// Decompresses all of zlib's data into exactly `out`.
fn inflate(packed: &[u8], out: &mut [u8]) -> Parsed<()> {
    let mut inflater = Decompress::new(true);
    let status = inflater.decompress(packed, out, FlushDecompress::Finish);
    match status {
        Ok(Status::StreamEnd) if inflater.total_out() == out.len() as u64 => Ok(()),
        Ok(_) => Err(wrong_inflated(out.len())),
        Err(e) => Err(format!("has an array that zlib cannot decompress ({e}): it is damaged")),
    }
}

/// Length of Blosc's header: versions, flags, bytes per value, then three sizes as u32.
const BLOSC_HEADER: usize = 16;

/// Blosc's flags: byte shuffle, stored uncompressed, bit shuffle, unsplit blocks; then the codec.
const SHUFFLED: u8 = 1;
const COPIED: u8 = 2;
const BITS_SHUFFLED: u8 = 4;
const NOT_SPLIT: u8 = 16;
const CODEC_SHIFT: u8 = 5;
const LZ4: u8 = 1;
const ZLIB: u8 = 3;

/// Blocks are split into one stream per byte of a value, up to this many bytes and with at least this many values
/// each.
const MAX_SPLIT: usize = 16;
const MIN_SPLIT_VALUES: usize = 128;

/// Decompresses a chunk of Blosc 1 into exactly `out`.
fn unpack_blosc(chunk: &[u8], out: &mut [u8]) -> Parsed<()> {
    const DAMAGED: &str = "has an array that Blosc cannot decompress: it is damaged";
    let word = |at: usize| {
        chunk
            .get(at..at + 4)
            .and_then(|b| b.try_into().ok())
            .map(u32::from_le_bytes)
    };
    let size = |at: usize| word(at).map(|n| n as usize).ok_or(DAMAGED);
    let (total, block_size) = (size(4)?, size(8)?);
    let (flags, width) = (chunk[2], usize::from(chunk[3]).max(1));
    if total != out.len() {
        return Err(wrong_size(total as u64, out.len()));
    }
    if flags & COPIED != 0 {
        let raw = chunk.get(BLOSC_HEADER..BLOSC_HEADER + total).ok_or(DAMAGED)?;
        out.copy_from_slice(raw);
        return Ok(());
    }
    if flags & BITS_SHUFFLED != 0 {
        return Err("has an array that Blosc stored with shuffled bits, which is not supported".into());
    }
    if block_size == 0 {
        return Err(DAMAGED.into());
    }
    let may_split = flags & NOT_SPLIT == 0 && width <= MAX_SPLIT && block_size / width >= MIN_SPLIT_VALUES;
    for (i, block) in out.chunks_mut(block_size).enumerate() {
        let mut at = size(BLOSC_HEADER + 4 * i)?;
        let parts = if may_split && block.len() == block_size {
            width
        } else {
            1
        };
        for part in block.chunks_mut(block.len() / parts) {
            let packed = size(at)?;
            let data = chunk.get(at + 4..).and_then(|rest| rest.get(..packed)).ok_or(DAMAGED)?;
            at += 4 + packed;
            match flags >> CODEC_SHIFT {
                _ if packed == part.len() => part.copy_from_slice(data),
                LZ4 if lz4_flex::block::decompress_into(data, part).is_ok_and(|n| n == part.len()) => {}
                ZLIB => inflate(data, part)?,
                LZ4 => return Err(DAMAGED.into()),
                codec => {
                    return Err(format!(
                        "has an array that Blosc compressed with codec {codec}, expected LZ4 ({LZ4}) or zlib ({ZLIB})"
                    ));
                }
            }
        }
        if flags & SHUFFLED != 0 && width > 1 {
            unshuffle(block, width);
        }
    }
    Ok(())
}

/// Undoes Blosc's byte shuffle; a remainder shorter than a value is not shuffled.
fn unshuffle(block: &mut [u8], width: usize) {
    let count = block.len() / width;
    let sorted = block.to_vec();
    for i in 0..count {
        for byte in 0..width {
            block[i * width + byte] = sorted[byte * count + i];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads eight values of which the first, third and last are active, from whatever follows the given bytes.
    fn read(compression: u32, bytes: &[u8]) -> Parsed<Vec<f32>> {
        read_as(compression, false, 0b1000_0101, bytes)
    }

    fn read_as(compression: u32, half: bool, active: u8, bytes: &[u8]) -> Parsed<Vec<f32>> {
        let mut file = tempfile::tempfile().expect("a temporary file");
        std::io::Write::write_all(&mut file, bytes).expect("writable");
        let mut stream = Stream::new(file, bytes.len() as u64);
        stream.seek(0)?;
        let coding = Coding {
            compression,
            half,
            background: 0.5,
        };
        let values = coding.values(&mut stream, &[active])?;
        assert_eq!(stream.at(), stream.length(), "all bytes are used");
        Ok(values)
    }

    fn floats(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    #[test]
    fn inactive_values_follow_their_rule() {
        let stored = floats(&[1.0, 2.0, 3.0]);
        let mask = [0b0100_1000];
        for (rule, between, off, on) in [
            (inactive::BACKGROUND, vec![], 0.5, 0.5),
            (inactive::MINUS_BACKGROUND, vec![], -0.5, -0.5),
            (inactive::ONE, floats(&[7.0]), 7.0, 7.0),
            (inactive::MASK, mask.to_vec(), -0.5, 0.5),
            (inactive::MASK_AND_ONE, [&floats(&[7.0])[..], &mask].concat(), 7.0, 0.5),
            (
                inactive::MASK_AND_TWO,
                [&floats(&[7.0, 8.0])[..], &mask].concat(),
                7.0,
                8.0,
            ),
        ] {
            let values = read(ACTIVE_ONLY, &[&[rule][..], &between, &stored].concat());
            assert_eq!(values, Ok(vec![1.0, off, 2.0, on, off, off, on, 3.0]), "rule {rule}");
        }
        assert!(read(ACTIVE_ONLY, &[7]).is_err_and(|e| e.contains("flag 7")));
    }

    #[test]
    fn all_values_may_be_stored() {
        let all = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        for (compression, rule) in [(0, inactive::BACKGROUND), (ACTIVE_ONLY, inactive::STORED)] {
            assert_eq!(
                read(compression, &[&[rule][..], &floats(&all)].concat()),
                Ok(all.to_vec())
            );
        }
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut encoder, &floats(&all)).expect("in memory");
        let packed = encoder.finish().expect("in memory");
        let size = (packed.len() as i64).to_le_bytes();
        let zipped = read(ZIP, &[&[inactive::STORED][..], &size, &packed].concat());
        assert_eq!(zipped, Ok(all.to_vec()));
        let raw = read(
            BLOSC,
            &[&[inactive::STORED][..], &(-32i64).to_le_bytes(), &floats(&all)].concat(),
        );
        assert_eq!(raw, Ok(all.to_vec()));
        let bomb = [&[inactive::STORED][..], &i64::MIN.to_le_bytes(), &floats(&all)].concat();
        assert!(read(ZIP, &bomb).is_err_and(|e| e.contains("expected 32")));
    }

    /// Two byte-shuffled blocks of 16 and 8 bytes, of which one is stored uncompressed.
    #[test]
    fn blocks_of_blosc_are_put_together() {
        let values = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let shuffled = |block: &[u8]| -> Vec<u8> {
            let width = 0..4;
            width
                .flat_map(|byte| block.iter().skip(byte).step_by(4).copied().collect::<Vec<u8>>())
                .collect()
        };
        let first = lz4_flex::block::compress(&shuffled(&values[..16]));
        let second = shuffled(&values[16..]);
        let words = |words: &[usize]| {
            words
                .iter()
                .flat_map(|w| (*w as u32).to_le_bytes())
                .collect::<Vec<u8>>()
        };
        let mut chunk = vec![2, 1, SHUFFLED | NOT_SPLIT | LZ4 << CODEC_SHIFT, 4];
        chunk.extend(words(&[24, 16, 0, 24, 28 + first.len(), first.len()]));
        chunk.extend([&first[..], &words(&[8]), &second].concat());
        let mut out = [0; 24];
        assert_eq!(unpack_blosc(&chunk, &mut out), Ok(()));
        assert_eq!(out[..], values);
        for length in 0..chunk.len() {
            assert!(unpack_blosc(&chunk[..length], &mut out).is_err(), "{length} bytes");
        }
        chunk[2] = SHUFFLED | 4 << CODEC_SHIFT;
        assert!(unpack_blosc(&chunk, &mut out).is_err_and(|e| e.contains("codec 4")));
    }

    /// Halves take two bytes each, and an empty array of halves no bytes at all; an empty array of 32-bit floats has a
    /// size.
    #[test]
    fn halves_are_read_and_no_values_have_no_bytes_or_a_size() {
        let halves = |values: &[f32]| -> Vec<u8> {
            values
                .iter()
                .flat_map(|v| half::f16::from_f32(*v).to_le_bytes())
                .collect()
        };
        for (compression, size) in [
            (ACTIVE_ONLY, vec![]),
            (ACTIVE_ONLY | ZIP, (-4i64).to_le_bytes().to_vec()),
        ] {
            let bytes = [&[inactive::BACKGROUND][..], &size, &halves(&[0.25, -3.0])].concat();
            let values = read_as(compression, true, 0b10_0001, &bytes);
            assert_eq!(values, Ok(vec![0.25, 0.5, 0.5, 0.5, 0.5, -3.0, 0.5, 0.5]));
        }
        assert_eq!(
            read_as(ACTIVE_ONLY | ZIP, true, 0, &[inactive::BACKGROUND]),
            Ok(vec![0.5; 8])
        );
        let none = [&[inactive::MINUS_BACKGROUND][..], &[0; 8]].concat();
        assert_eq!(read_as(ACTIVE_ONLY | BLOSC, false, 0, &none), Ok(vec![-0.5; 8]));
        assert!(read_as(ACTIVE_ONLY | BLOSC, false, 0, &none[..8]).is_err_and(|e| e.contains("truncated")));
    }

    #[test]
    fn arrays_of_another_size_are_refused() {
        let all = floats(&[1.0; 8]);
        let stored = |size: i64, bytes: &[u8]| {
            let bytes = [&[inactive::STORED][..], &size.to_le_bytes(), bytes].concat();
            read(ZIP, &bytes)
        };
        assert_eq!(stored(-32, &all), Ok(vec![1.0; 8]));
        assert_eq!(stored(-28, &all), Err(wrong_size(28, 32)));
        assert_eq!(stored(0, &all), Err(wrong_size(0, 32)));
        for length in [28, 31, 33, 36] {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
            std::io::Write::write_all(&mut encoder, &vec![7; length]).expect("in memory");
            let packed = encoder.finish().expect("in memory");
            let error = stored(packed.len() as i64, &packed).expect_err("it does not fit");
            assert_eq!(error, wrong_inflated(32), "{length} bytes");
        }
        assert!(stored(4, &[1, 2, 3, 4]).is_err_and(|e| e.contains("zlib cannot decompress")));
    }

    /// A chunk of Blosc whose blocks have parts as given, none of them compressed.
    fn chunk(flags: u8, width: u8, total: usize, block: usize, blocks: &[&[&[u8]]]) -> Vec<u8> {
        let mut head = vec![2, 1, flags, width];
        let mut starts = Vec::new();
        let mut body = Vec::new();
        for parts in blocks {
            starts.push((BLOSC_HEADER + 4 * blocks.len() + body.len()) as u32);
            for part in *parts {
                body.extend((part.len() as u32).to_le_bytes());
                body.extend(*part);
            }
        }
        let length = BLOSC_HEADER + 4 * blocks.len() + body.len();
        for word in [total as u32, block as u32, length as u32].into_iter().chain(starts) {
            head.extend(word.to_le_bytes());
        }
        [head, body].concat()
    }

    fn unpack(chunk: &[u8], length: usize) -> Parsed<Vec<u8>> {
        let mut out = vec![0; length];
        unpack_blosc(chunk, &mut out).map(|()| out)
    }

    /// Whole blocks are in as many parts as a value has bytes, where that is 16 at most and parts have 128 bytes at
    /// least; other blocks, and the last one where it is shorter, are in one part.
    #[test]
    fn blocks_are_split_by_the_rule() {
        let bytes: Vec<u8> = (0..4096u32).map(|i| (i * i / 7) as u8).collect();
        for (width, block, parts) in [
            (4, 512, 4),
            (4, 508, 1),
            (16, 2048, 16),
            (17, 2176, 1),
            (1, 128, 1),
            (0, 256, 1),
        ] {
            let flags = LZ4 << CODEC_SHIFT;
            let whole: Vec<&[u8]> = bytes[..block].chunks(block / parts).collect();
            let rest = &bytes[block..block + 64];
            let split = chunk(flags, width, block + 64, block, &[&whole, &[rest]]);
            assert_eq!(
                unpack(&split, block + 64),
                Ok(bytes[..block + 64].to_vec()),
                "{width} {block}"
            );
            let unsplit = chunk(flags | NOT_SPLIT, width, block, block, &[&[&bytes[..block]]]);
            assert_eq!(unpack(&unsplit, block), Ok(bytes[..block].to_vec()), "{width} {block}");
            if parts > 1 {
                let wrong = chunk(flags, width, block, block, &[&[&bytes[..block]]]);
                assert!(unpack(&wrong, block).is_err(), "{width} {block}");
            }
        }
    }

    /// Three values of three bytes each, and a remainder of one byte.
    #[test]
    fn a_remainder_is_not_shuffled() {
        let mut block = *b"adgbehcfi!";
        unshuffle(&mut block, 3);
        assert_eq!(&block, b"abcdefghi!");
        let chunk = |flags, width| {
            chunk(
                flags | NOT_SPLIT | LZ4 << CODEC_SHIFT,
                width,
                10,
                10,
                &[&[b"adgbehcfi!"]],
            )
        };
        assert_eq!(unpack(&chunk(SHUFFLED, 3), 10), Ok(b"abcdefghi!".to_vec()));
        assert_eq!(unpack(&chunk(SHUFFLED, 1), 10), Ok(b"adgbehcfi!".to_vec()));
        assert_eq!(unpack(&chunk(0, 3), 10), Ok(b"adgbehcfi!".to_vec()));
    }

    #[test]
    fn chunks_of_blosc_say_what_is_wrong_with_them() {
        let copied = [&chunk(COPIED, 4, 5, 5, &[])[..], b"12345"].concat();
        assert_eq!(unpack(&copied, 5), Ok(b"12345".to_vec()));
        assert!(unpack(&copied[..20], 5).is_err_and(|e| e.contains("Blosc cannot decompress")));
        assert_eq!(unpack(&copied, 6), Err(wrong_size(5, 6)));
        let bits = chunk(BITS_SHUFFLED, 4, 4, 4, &[&[b"1234"]]);
        assert!(unpack(&bits, 4).is_err_and(|e| e.contains("shuffled bits")));
        assert!(unpack(&chunk(0, 4, 4, 0, &[&[b"1234"]]), 4).is_err_and(|e| e.contains("Blosc cannot decompress")));
        let packed = |codec: u8, packed: &[u8]| unpack(&chunk(codec << CODEC_SHIFT, 4, 64, 64, &[&[packed]]), 64);
        let lz4 = |length: usize| lz4_flex::block::compress(&vec![3; length]);
        assert_eq!(packed(LZ4, &lz4(64)), Ok(vec![3; 64]));
        for length in [60, 68] {
            assert!(
                packed(LZ4, &lz4(length)).is_err_and(|e| e.contains("Blosc cannot decompress")),
                "{length}"
            );
        }
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut encoder, &[5; 64]).expect("in memory");
        assert_eq!(packed(ZLIB, &encoder.finish().expect("in memory")), Ok(vec![5; 64]));
        assert!(packed(0, &lz4(64)).is_err_and(|e| e.contains("codec 0, expected LZ4 (1) or zlib (3)")));
    }
}
