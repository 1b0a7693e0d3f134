//! Named arrays and text in one `.safetensors` file, written and read array by array.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};

use super::atomic::{Pending, read_f32, write_f32};
use super::{IoError, Result, atomic, open};

/// The longest accepted JSON header.
const MAX_HEADER_BYTES: u64 = 16 << 20;

/// Values of one array.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Values<'a> {
    F32(&'a [f32]),
    U32(&'a [u32]),
    U64(&'a [u64]),
}

/// One named array.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor<'a> {
    pub name: String,
    /// Lengths of the axes, the last contiguous.
    pub shape: Vec<usize>,
    pub values: Values<'a>,
}

/// Writes arrays and text without copying the arrays.
///
/// # Errors
/// If the file cannot be written, a name occurs twice, or a shape does not fit its values.
pub fn write(path: &Path, tensors: &[Tensor<'_>], text: &BTreeMap<String, String>) -> Result<()> {
    let described = tensors.iter().map(|tensor| {
        let (dtype, bytes) = match tensor.values {
            Values::F32(v) => (Dtype::F32, size_of_val(v)),
            Values::U32(v) => (Dtype::U32, size_of_val(v)),
            Values::U64(v) => (Dtype::U64, size_of_val(v)),
        };
        (tensor.name.as_str(), tensor.shape.as_slice(), dtype, bytes)
    });
    let header = encode_header(path, described, text)?;
    atomic::write(path, |out| {
        out.write_all(&(header.len() as u64).to_le_bytes())?;
        out.write_all(&header)?;
        for tensor in tensors {
            match tensor.values {
                Values::F32(values) => write_f32(out, values)?,
                Values::U32(values) => values.iter().try_for_each(|v| out.write_all(&v.to_le_bytes()))?,
                Values::U64(values) => values.iter().try_for_each(|v| out.write_all(&v.to_le_bytes()))?,
            }
        }
        Ok(())
    })
}

/// Writes arrays of f32 of these names and shapes; each is fetched by its index when it is written, so that only one
/// is in memory. Another thread waits for the disk and renames the file.
///
/// # Errors
/// As [`write()`]; also if an array cannot be fetched or has another length than its shape.
pub fn write_behind(
    path: &Path,
    arrays: &[(String, Vec<usize>)],
    text: &BTreeMap<String, String>,
    mut fetch: impl FnMut(usize) -> io::Result<Vec<f32>>,
) -> Result<Pending> {
    let len = |shape: &[usize]| shape.iter().product::<usize>();
    let described = arrays
        .iter()
        .map(|(name, shape)| (name.as_str(), shape.as_slice(), Dtype::F32, 4 * len(shape)));
    let header = encode_header(path, described, text)?;
    atomic::write_behind(path, |out| {
        out.write_all(&(header.len() as u64).to_le_bytes())?;
        out.write_all(&header)?;
        for (index, (name, shape)) in arrays.iter().enumerate() {
            let values = fetch(index)?;
            if values.len() != len(shape) {
                let message = format!("{name} has {} values, expected {}", values.len(), len(shape));
                return Err(io::Error::other(message));
            }
            write_f32(out, &values)?;
        }
        Ok(())
    })
}

/// The JSON header of arrays given as name, shape, type and bytes, in the order of the file.
fn encode_header<'a>(
    path: &Path,
    arrays: impl Iterator<Item = (&'a str, &'a [usize], Dtype, usize)>,
    text: &BTreeMap<String, String>,
) -> Result<Vec<u8>> {
    let mut infos: Vec<(String, TensorInfo)> = Vec::new();
    let mut end = 0;
    for (name, shape, dtype, bytes) in arrays {
        if infos.iter().any(|(other, _)| other == name) {
            return Err(IoError::new(path, format!("cannot hold two arrays named `{name}`")));
        }
        let info = TensorInfo {
            dtype,
            shape: shape.to_vec(),
            data_offsets: (end, end + bytes),
        };
        infos.push((name.to_owned(), info));
        end += bytes;
    }
    let text: HashMap<String, String> = text.clone().into_iter().collect();
    let metadata =
        Metadata::new(Some(text), infos).map_err(|e| IoError::new(path, format!("cannot be written: {e}")))?;
    let mut header =
        serde_json::to_vec(&metadata).map_err(|e| IoError::new(path, format!("cannot be written: {e}")))?;
    header.resize(header.len().next_multiple_of(8), b' ');
    Ok(header)
}

/// An open file whose header has been checked against its length.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    file: BufReader<File>,
    header: Metadata,
    data_start: u64,
}

impl Reader {
    /// Opens a file.
    ///
    /// # Errors
    /// If it is no `.safetensors` file, or if header and length disagree (a truncated or hostile file).
    pub fn open(path: &Path) -> Result<Self> {
        let (file, length) = open(path)?;
        let fail = |message: String| Err(IoError::new(path, message));
        let mut file = BufReader::with_capacity(1 << 18, file);
        let mut prefix = [0; 8];
        if file.read_exact(&mut prefix).is_err() {
            return fail(format!("is {length} bytes long, too short for a .safetensors file"));
        }
        let header_bytes = u64::from_le_bytes(prefix);
        if header_bytes > MAX_HEADER_BYTES || header_bytes > length - 8 {
            return fail(format!(
                "is not a .safetensors file, or truncated: it claims a header of {header_bytes} bytes"
            ));
        }
        let mut json = vec![0; header_bytes as usize];
        let read = file.read_exact(&mut json);
        let parsed = read
            .map_err(|e| e.to_string())
            .and_then(|()| serde_json::from_slice(&json).map_err(|e| e.to_string()));
        let header: Metadata = match parsed {
            Ok(header) => header,
            Err(e) => return fail(format!("has a header that is not .safetensors': {e}")),
        };
        let data_start = 8 + header_bytes;
        let (claimed, held) = (header.data_len() as u64, length - data_start);
        if claimed != held {
            return fail(format!(
                "claims {claimed} bytes of arrays but holds {held}: it is truncated or damaged"
            ));
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            header,
            data_start,
        })
    }

    /// The text stored under `key`.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.header.metadata().as_ref()?.get(key).map(String::as_str)
    }

    /// Names of the arrays in the order of the file.
    pub fn names(&self) -> Vec<String> {
        self.header.offset_keys()
    }

    /// Lengths of the axes of an array.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.header.info(name).map(|info| info.shape.as_slice())
    }

    /// Reads an array of f32.
    ///
    /// # Errors
    /// If there is none of that name and type.
    pub fn f32(&mut self, name: &str) -> Result<Vec<f32>> {
        let bytes = self.seek(name, Dtype::F32)?;
        read_f32(&mut self.file, bytes / 4).map_err(|e| self.unreadable(e))
    }

    /// Reads an array of u32.
    ///
    /// # Errors
    /// If there is none of that name and type.
    pub fn u32(&mut self, name: &str) -> Result<Vec<u32>> {
        let bytes = self.bytes(name, Dtype::U32)?;
        Ok(bytes.as_chunks().0.iter().map(|&b| u32::from_le_bytes(b)).collect())
    }

    /// Reads an array of u64.
    ///
    /// # Errors
    /// If there is none of that name and type.
    pub fn u64(&mut self, name: &str) -> Result<Vec<u64>> {
        let bytes = self.bytes(name, Dtype::U64)?;
        Ok(bytes.as_chunks().0.iter().map(|&b| u64::from_le_bytes(b)).collect())
    }

    fn bytes(&mut self, name: &str, dtype: Dtype) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.seek(name, dtype)?];
        self.file.read_exact(&mut bytes).map_err(|e| self.unreadable(e))?;
        Ok(bytes)
    }

    /// Seeks to the first value of an array and returns its length in bytes.
    fn seek(&mut self, name: &str, dtype: Dtype) -> Result<usize> {
        let Some(info) = self.header.info(name) else {
            return Err(IoError::new(&self.path, format!("holds no array named `{name}`")));
        };
        if info.dtype != dtype {
            let message = format!("array `{name}` is of type {:?}, expected {dtype:?}", info.dtype);
            return Err(IoError::new(&self.path, message));
        }
        let (start, end) = info.data_offsets;
        self.file
            .seek(SeekFrom::Start(self.data_start + start as u64))
            .map_err(|e| self.unreadable(e))?;
        Ok(end - start)
    }

    fn unreadable(&self, error: std::io::Error) -> IoError {
        IoError::new(&self.path, format!("cannot be read: {error}"))
    }
}
