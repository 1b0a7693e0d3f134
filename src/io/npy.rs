//! NumPy's `.npy` grids: `[z][y][x][channel]`, or `[z][y][x]` for one channel.

use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use npyz::{AutoSerialize, DType, NpyFile, NpyHeader, Order, WriterBuilder};

use super::{Grid, GridHeader, IoError, Result, UNIT_CUBE, atomic, check_finite, checked_len, open};

/// The longest accepted text header; NumPy's own limit is smaller.
const MAX_HEADER_BYTES: u32 = 1 << 16;

/// Reads the header. Bounds are the unit cube: the format has none.
///
/// # Errors
/// If the file is no `.npy` of 3 or 4 axes of 32- or 64-bit floats in C order, or is too short for what it claims.
pub fn header(path: &Path) -> Result<GridHeader> {
    open_npy(path).map(|(header, _, _)| header)
}

/// Reads a grid of f32 or f64, of either endianness.
///
/// # Errors
/// As [`header`]; also if a value is NaN or infinite.
pub fn read(path: &Path) -> Result<Grid> {
    let (header, npy, file) = open_npy(path)?;
    let fail = |e: &dyn std::fmt::Display| IoError::new(path, format!("cannot be read: {e}"));
    let wide = bytes_per_value(&npy.dtype()) == Some(8);
    let npy = NpyFile::with_header(npy, file);
    let data = if wide {
        let values = npy.data::<f64>().map_err(|e| fail(&e))?;
        values
            .map(|v| v.map(|v| v as f32))
            .collect::<std::io::Result<Vec<f32>>>()
    } else {
        npy.into_vec::<f32>()
    };
    let data = data.map_err(|e| fail(&e))?;
    check_finite(
        path,
        Grid {
            size: header.size,
            channels: header.channels,
            bounds: header.bounds,
            data,
        },
    )
}

/// Writes a grid as little endian f32 with four axes.
pub fn write(path: &Path, grid: &Grid) -> Result<()> {
    let [x, y, z] = grid.size.map(|n| n as u64);
    write_array(path, &[z, y, x, grid.channels as u64], &grid.data)
}

/// Writes values of any shape, the last axis contiguous, in the type that they have.
///
/// # Errors
/// If the file cannot be written.
pub fn write_array<T: AutoSerialize + Copy>(path: &Path, shape: &[u64], values: &[T]) -> Result<()> {
    atomic::write(path, |out| {
        let mut npy = npyz::WriteOptions::new()
            .default_dtype()
            .shape(shape)
            .writer(out)
            .begin_nd()?;
        npy.extend(values.iter().copied())?;
        npy.finish()
    })
}

type Opened = (GridHeader, NpyHeader, BufReader<std::fs::File>);

/// Parses and checks the header; the file is left at its first value.
fn open_npy(path: &Path) -> Result<Opened> {
    let (file, length) = open(path)?;
    let mut file = BufReader::with_capacity(1 << 18, file);
    check_preamble(path, &mut file)?;
    let npy = NpyHeader::from_reader(&mut file).map_err(|e| IoError::new(path, fault(&e)))?;
    let data_start = file
        .stream_position()
        .map_err(|e| IoError::new(path, format!("cannot be read: {e}")))?;
    let header = interpret(path, &npy, length.saturating_sub(data_start))?;
    Ok((header, npy, file))
}

/// What is wrong with a header. The parser's own message is not told: it quotes the header over several lines.
fn fault(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "ends within its header: it is truncated; write it again with numpy.save",
        _ => {
            "has a header that is not .npy's, expected one such as {'descr': '<f4', 'fortran_order': False, 'shape': (4, 4, 4)}; \
             write it with numpy.save"
        }
    }
}

/// Rejects files that are not `.npy` and implausible header lengths, then rewinds.
fn check_preamble(path: &Path, file: &mut (impl Read + Seek)) -> Result<()> {
    let mut bytes = [0; 12];
    if file.read_exact(&mut bytes).is_err() || &bytes[..6] != b"\x93NUMPY" {
        return Err(IoError::new(
            path,
            "is not a .npy file: it does not begin with \"\\x93NUMPY\"",
        ));
    }
    let claimed = match bytes[6] {
        1 => u32::from(u16::from_le_bytes([bytes[8], bytes[9]])),
        _ => u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
    };
    if claimed > MAX_HEADER_BYTES {
        return Err(IoError::new(
            path,
            format!("claims a header of {claimed} bytes, expected at most {MAX_HEADER_BYTES}"),
        ));
    }
    file.seek(SeekFrom::Start(0))
        .map_err(|e| IoError::new(path, format!("cannot be read: {e}")))?;
    Ok(())
}

fn interpret(path: &Path, npy: &NpyHeader, payload: u64) -> Result<GridHeader> {
    let fail = |message: String| Err(IoError::new(path, message));
    let Some(bytes) = bytes_per_value(&npy.dtype()) else {
        return fail(format!(
            "holds values of type {}, expected 32- or 64-bit floats",
            npy.dtype().descr()
        ));
    };
    if npy.order() != Order::C {
        return fail("is in Fortran order, expected C order; write it with numpy.ascontiguousarray".into());
    }
    let (size, channels) = match *npy.shape() {
        [z, y, x] => ([x, y, z], 1),
        [z, y, x, c] => ([x, y, z], c),
        _ => {
            return fail(format!(
                "has shape {:?}, expected [z, y, x] or [z, y, x, channels]",
                npy.shape()
            ));
        }
    };
    if size.contains(&0) || channels == 0 {
        return fail(format!("has shape {:?}, which is empty", npy.shape()));
    }
    if checked_len(size, channels, bytes, payload).is_none() {
        return fail(format!(
            "claims the shape {:?} but holds only {payload} bytes of it",
            npy.shape()
        ));
    }
    Ok(GridHeader {
        size: size.map(|n| n as usize),
        channels: channels as usize,
        bounds: UNIT_CUBE,
    })
}

fn bytes_per_value(dtype: &DType) -> Option<u64> {
    match dtype {
        DType::Plain(ty) => match ty.to_string().as_str() {
            "<f4" | ">f4" => Some(4),
            "<f8" | ">f8" => Some(8),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_begin_as_it_should_is_told() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.npy");
        let told = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("writable");
            let error = read(&path).expect_err("no grid").to_string();
            error
                .rsplit_once("a.npy: ")
                .map(|(_, message)| message.to_owned())
                .expect("the file is named")
        };
        let foreign = "is not a .npy file: it does not begin with \"\\x93NUMPY\"";
        assert_eq!(told(b"\x93NUMPZ\x01\x00\x10\x00{            "), foreign);
        assert_eq!(told(b"\x93NUMPY\x01\x00\x10\x00{"), foreign, "eleven bytes");
        assert_eq!(told(b""), foreign);
        // Two bytes of length in the first version, four in later ones.
        let claims = |version: u8, length: [u8; 4]| {
            let bytes = [&b"\x93NUMPY"[..], &[version, 0], &length, &[b' '; 64]].concat();
            told(&bytes)
        };
        let message = |bytes: u32| format!("claims a header of {bytes} bytes, expected at most {MAX_HEADER_BYTES}");
        assert_eq!(claims(2, [1, 2, 3, 4]), message(0x0403_0201));
        let [a, b, c, d] = (MAX_HEADER_BYTES + 1).to_le_bytes();
        assert_eq!(claims(2, [a, b, c, d]), message(MAX_HEADER_BYTES + 1));
        let [a, b, c, d] = MAX_HEADER_BYTES.to_le_bytes();
        assert!(claims(2, [a, b, c, d]).starts_with("ends within its header"));
        assert!(claims(1, [40, 0, 255, 255]).starts_with("has a header that is not .npy's"));
        // The parser's own message has several lines, with the header in it.
        let nested = format!("{:<60000}\n", "(".repeat(3000));
        for header in [nested.as_str(), "{'descr': '<f4', 'fortran_order': \u{1b}[31m\n"] {
            let length = u16::try_from(header.len()).expect("short").to_le_bytes();
            let message = told(&[b"\x93NUMPY\x01\x00", &length[..], header.as_bytes()].concat());
            assert!(message.contains("expected one such as {'descr': '<f4'"), "{message}");
            assert!(message.len() < 200 && !message.contains(['\n', '\u{1b}']), "{message}");
        }
        let cut = [&b"\x93NUMPY\x01\x00"[..], &[80, 0], b"{'descr':"].concat();
        assert!(told(&cut).starts_with("ends within its header"), "{}", told(&cut));
    }
}
