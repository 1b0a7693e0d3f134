//! Mitsuba's `.vol` grids. More than 6 channels is an extension that Mitsuba does not read.
//!
//! Little endian: `VOL`, version 3 (u8), encoding 1 = f32 (i32), size x y z (i32), channels (i32), bounds
//! (6 × f32: lower and upper corner), then the values `[z][y][x][channel]`.

use std::io::{BufReader, Read, Write};
use std::path::Path;

use super::atomic::{read_f32, write_f32};
use super::{Grid, GridHeader, IoError, Result, atomic, check_finite, checked_len, open};

const HEADER_BYTES: usize = 48;

/// Reads the header.
///
/// # Errors
/// If the file is not a `.vol` of 32-bit floats, or is too short for the grid that it claims to hold.
pub fn header(path: &Path) -> Result<GridHeader> {
    let (mut file, length) = open(path)?;
    read_header(path, &mut file, length)
}

/// Reads a grid.
///
/// # Errors
/// As [`header`]; also if a value is NaN or infinite.
pub fn read(path: &Path) -> Result<Grid> {
    let (file, length) = open(path)?;
    let mut file = BufReader::with_capacity(1 << 18, file);
    let header = read_header(path, &mut file, length)?;
    let count = header.size.iter().product::<usize>() * header.channels;
    let data = read_f32(&mut file, count).map_err(|e| IoError::new(path, format!("cannot be read: {e}")))?;
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

/// Writes a grid.
///
/// # Errors
/// If the file cannot be written or a size does not fit the format's 31 bits.
pub fn write(path: &Path, grid: &Grid) -> Result<()> {
    let mut header = b"VOL\x03".to_vec();
    header.extend(1i32.to_le_bytes());
    for n in grid.size.into_iter().chain([grid.channels]) {
        let n = i32::try_from(n).map_err(|_| IoError::new(path, format!("{n} texels are too many for a .vol file")))?;
        header.extend(n.to_le_bytes());
    }
    header.extend(grid.bounds.as_flattened().iter().flat_map(|v| v.to_le_bytes()));
    atomic::write(path, |out| {
        out.write_all(&header)?;
        write_f32(out, &grid.data)
    })
}

fn read_header(path: &Path, file: &mut impl Read, length: u64) -> Result<GridHeader> {
    let fail = |message: String| Err(IoError::new(path, message));
    let mut bytes = [0; HEADER_BYTES];
    if file.read_exact(&mut bytes).is_err() {
        return fail(format!(
            "is {length} bytes long, shorter than the {HEADER_BYTES}-byte header of a .vol file"
        ));
    }
    if &bytes[..3] != b"VOL" {
        return fail("is not a .vol file: it does not begin with \"VOL\"".into());
    }
    if bytes[3] != 3 {
        return fail(format!("has .vol version {}, expected 3", bytes[3]));
    }
    let word = |i: usize| [bytes[4 * i], bytes[4 * i + 1], bytes[4 * i + 2], bytes[4 * i + 3]];
    let int = |i: usize| i32::from_le_bytes(word(i));
    if int(1) != 1 {
        return fail(format!("has encoding {}, expected 1 (32-bit floats)", int(1)));
    }
    let (size, channels) = ([int(2), int(3), int(4)], int(5));
    if size.iter().any(|&n| n < 1) || channels < 1 {
        return fail(format!(
            "claims {} × {} × {} texels of {channels} channels, expected at least 1",
            size[0], size[1], size[2]
        ));
    }
    let payload = length.saturating_sub(HEADER_BYTES as u64);
    if checked_len(size.map(|n| n as u64), channels as u64, 4, payload).is_none() {
        let [x, y, z] = size;
        return fail(format!(
            "claims {x} × {y} × {z} texels of {channels} channels but holds only {payload} bytes of them"
        ));
    }
    let corner = |first: usize| std::array::from_fn(|axis| f32::from_le_bytes(word(first + axis)));
    let bounds: [[f32; 3]; 2] = [corner(6), corner(9)];
    if bounds.as_flattened().iter().any(|v| !v.is_finite()) {
        return fail(format!("has bounds {bounds:?}, expected finite numbers"));
    }
    Ok(GridHeader {
        size: size.map(|n| n as usize),
        channels: channels as usize,
        bounds,
    })
}
