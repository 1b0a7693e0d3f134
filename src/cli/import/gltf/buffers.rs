//! The binary data of a glTF file: inside it, in files beside it, or in its URIs; and checks of the sizes that it
//! claims.

use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gltf::accessor::{DataType, Dimensions};
use gltf::json::validation::{Checked, Validate as _};
use gltf::{Accessor, Gltf, Semantic, buffer, image, json};

use crate::io::read_at_most;

/// Largest file, in bytes.
const MAX_BYTES: u64 = 2 << 30;

/// Largest number of entries of a sparse accessor without a buffer view, most of which are zero: the file's length does
/// not limit it.
const MAX_IMPLIED: usize = 1 << 20;

/// Bytes of the header of a binary file.
const HEADER: usize = 12;

/// The bytes of all buffers.
#[derive(Debug)]
pub(super) struct Buffers {
    folder: PathBuf,
    data: Vec<Vec<u8>>,
}

impl Buffers {
    /// The bytes of a buffer.
    pub(super) fn of(&self, buffer: &gltf::Buffer<'_>) -> Option<&[u8]> {
        self.data.get(buffer.index()).map(Vec::as_slice)
    }

    /// The bytes of an image as they are coded.
    pub(super) fn image(&self, image: &gltf::Image<'_>) -> Result<Vec<u8>> {
        match image.source() {
            image::Source::View { view, .. } => Ok(self.view(&view)?.to_vec()),
            image::Source::Uri { uri, .. } => fetch(&self.folder, uri),
        }
    }

    /// Checks that an accessor is of one of these kinds and lies in its buffer. Reading any other would panic, or could
    /// take far more memory than the file.
    ///
    /// # Errors
    /// It is of another kind, or its claimed size or place cannot be true.
    pub(super) fn check(&self, accessor: &Accessor<'_>, kinds: &[(Dimensions, DataType)]) -> Result<()> {
        let number = accessor.index();
        let kind = (accessor.dimensions(), accessor.data_type());
        ensure!(
            kinds.contains(&kind),
            "accessor {number} holds {:?} of {:?}, which its place cannot have; export the file without \
             quantisation and compression",
            kind.0,
            kind.1
        );
        ensure!(accessor.count() > 0, "accessor {number} is empty: the file is damaged");
        if let Some(view) = accessor.view() {
            self.holds_entries(number, &view, accessor.offset(), accessor.count(), accessor.size())?;
        }
        let Some(sparse) = accessor.sparse() else {
            return Ok(());
        };
        let (indices, values) = (sparse.indices(), sparse.values());
        ensure!(
            (1..=accessor.count()).contains(&sparse.count()),
            "accessor {number} has {} entries, of which {} are stated: the file is damaged",
            accessor.count(),
            sparse.count()
        );
        ensure!(
            accessor.view().is_some() || accessor.count() <= MAX_IMPLIED,
            "accessor {number} claims {} entries without data; at most {MAX_IMPLIED} are taken",
            accessor.count()
        );
        for (view, offset, size) in [
            (indices.view(), indices.offset(), indices.index_type().size()),
            (values.view(), values.offset(), accessor.size()),
        ] {
            self.holds_entries(number, &view, offset, sparse.count(), size)?;
        }
        Ok(())
    }

    /// Checks that a buffer view holds `count` entries of `size` bytes each.
    fn holds_entries(
        &self,
        accessor: usize,
        view: &buffer::View<'_>,
        offset: usize,
        count: usize,
        size: usize,
    ) -> Result<()> {
        let stride = view.stride().unwrap_or(size);
        ensure!(
            stride >= size,
            "accessor {accessor} has entries that overlap: the file is damaged"
        );
        let bytes = self.view(view).with_context(|| format!("accessor {accessor}"))?;
        ensure!(
            end(offset, stride, count, size).is_some_and(|end| end <= bytes.len()),
            "accessor {accessor}: buffer view {} has fewer bytes than are read from it: the file is damaged",
            view.index()
        );
        Ok(())
    }

    fn view(&self, view: &buffer::View<'_>) -> Result<&[u8]> {
        let end = view.offset().checked_add(view.length());
        let bytes = self.of(&view.buffer());
        let found = end.and_then(|end| bytes?.get(view.offset()..end));
        let number = view.index();
        found.with_context(|| format!("buffer view {number} lies outside of its buffer: the file is damaged"))
    }
}

/// Position behind the last byte of an array's last entry; None without entries, or if it overflows.
fn end(offset: usize, stride: usize, count: usize, size: usize) -> Option<usize> {
    stride
        .checked_mul(count.checked_sub(1)?)?
        .checked_add(offset)?
        .checked_add(size)
}

/// Reads a file and its buffers.
///
/// # Errors
/// It is no glTF 2.0, asks for an extension that is not read, or is damaged; a buffer is missing or shorter than the
/// file says.
pub(super) fn open(path: &Path) -> Result<(Gltf, Buffers)> {
    let shown = path.display();
    let bytes = read(path)?;
    let mut gltf = parse(&bytes).with_context(|| format!("{shown}"))?;
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    let mut inner = gltf.blob.take();
    let mut data = Vec::new();
    for buffer in gltf.buffers() {
        let bytes = match buffer.source() {
            buffer::Source::Bin => inner
                .take()
                .context("its binary part is missing: the file is truncated or damaged"),
            buffer::Source::Uri(uri) => fetch(&folder, uri),
        };
        let bytes = bytes.with_context(|| format!("{shown}"))?;
        ensure!(
            bytes.len() >= buffer.length(),
            "{shown}: buffer {} has {} bytes, but {} are claimed: the file is truncated or damaged",
            buffer.index(),
            bytes.len(),
            buffer.length()
        );
        data.push(bytes);
    }
    Ok((gltf, Buffers { folder, data }))
}

fn parse(bytes: &[u8]) -> Result<Gltf> {
    if bytes.starts_with(b"glTF") {
        let length = bytes.get(8..HEADER).and_then(|word| word.try_into().ok());
        let length = u32::from_le_bytes(length.context("ends within its header: the file is truncated")?) as usize;
        ensure!(
            (HEADER..=bytes.len()).contains(&length),
            "has {} bytes, but {length} are claimed: the file is truncated or damaged",
            bytes.len()
        );
    }
    let gltf = Gltf::from_slice_without_validation(bytes)
        .map_err(|error| anyhow::anyhow!("is no glTF 2.0, or is damaged: {error}"))?;
    let known = json::extensions::ENABLED_EXTENSIONS;
    if let Some(name) = gltf.extensions_required().find(|name| !known.contains(name)) {
        bail!("cannot be read without the extension `{name}`; export it without that");
    }
    let root = gltf.as_json();
    check_version(&root.asset)?;
    // `validate` assumes that these accessors exist.
    let primitives = root.meshes.iter().flat_map(|mesh| &mesh.primitives);
    let positions = Checked::Valid(Semantic::Positions);
    let mut places = primitives.filter_map(|primitive| primitive.attributes.get(&positions));
    if let Some(beyond) = places.find(|index| index.value() >= root.accessors.len()) {
        bail!(
            "names accessor {}, but has {}: the file is damaged",
            beyond.value(),
            root.accessors.len()
        );
    }
    // `validate` does not check these members of an image either, on which the crate relies.
    let lacks = |image: &json::Image| match image.buffer_view {
        Some(_) => image.mime_type.is_none().then_some("mimeType"),
        None => image.uri.is_none().then_some("uri"),
    };
    if let Some((number, what)) = root
        .images
        .iter()
        .enumerate()
        .find_map(|(i, image)| Some((i, lacks(image)?)))
    {
        bail!("image {number} has no `{what}`: the file is damaged");
    }
    let mut first = None;
    root.validate(root, json::Path::new, &mut |path, error| {
        first.get_or_insert_with(|| format!("{}: {error}", path()));
    });
    match first {
        Some(mistake) => bail!("is no glTF 2.0, or is damaged: {mistake}"),
        None => check_parents(&root.nodes).map(|()| gltf),
    }
}

/// Refuses versions of glTF other than 2.0, and those after it unless the file says that 2.0 is enough.
fn check_version(asset: &json::Asset) -> Result<()> {
    let is_second = asset.version.split('.').next() == Some("2");
    let least = asset.min_version.as_ref().filter(|_| is_second);
    ensure!(
        is_second && least.is_none_or(|least| least == "2.0"),
        "is glTF {}, expected 2.0; export it as that version",
        least.unwrap_or(&asset.version)
    );
    Ok(())
}

/// Refuses nodes with several parents, as glTF does: each of a few dozen nodes that names the next one twice would double the
/// shapes.
fn check_parents(nodes: &[json::Node]) -> Result<()> {
    let mut parents = vec![None; nodes.len()];
    for (parent, node) in nodes.iter().enumerate() {
        for child in node.children.iter().flatten().map(|child| child.value()) {
            if let Some(other) = parents[child].replace(parent) {
                bail!("node {child} is a child of node {other} and again of node {parent}; give each a copy of it");
            }
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let shown = path.display();
    let size = std::fs::metadata(path)
        .with_context(|| format!("{shown}: cannot be read"))?
        .len();
    ensure!(
        size <= MAX_BYTES,
        "{shown}: has {size} bytes, but a file of a glTF scene may have {MAX_BYTES} at most"
    );
    read_at_most(path, MAX_BYTES).with_context(|| format!("{shown}: cannot be read"))
}

/// The bytes that a URI refers to: base64 data in the URI itself, or a file in the folder.
fn fetch(folder: &Path, uri: &str) -> Result<Vec<u8>> {
    if let Some(rest) = uri.strip_prefix("data:") {
        let coded = rest.split_once(";base64,").map(|(_, coded)| coded);
        let bytes = coded.and_then(|coded| STANDARD.decode(coded).ok());
        return bytes.context("a name that holds data is not in base 64: the file is damaged");
    }
    let name = unescaped(uri)?;
    let is_plain = |part: Component| matches!(part, Component::Normal(_) | Component::CurDir);
    if uri.contains("://") || !Path::new(&name).components().all(is_plain) {
        bail!("the name {uri:?} leads out of the file's folder; put what it means beside the file");
    }
    read(&folder.join(name))
}

/// Decodes the percent escapes of a URI, such as `%20` for a blank.
fn unescaped(uri: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(uri.len());
    let mut rest = uri.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match (first, code.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).with_context(|| format!("the name {uri:?} is no UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_their_folder() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("a b.bin"), [1, 2]).expect("writable");
        let fetch = |uri: &str| fetch(folder.path(), uri).map_err(|e| format!("{e:#}"));
        assert_eq!(fetch("a%20b.bin"), Ok(vec![1, 2]));
        assert_eq!(fetch("./a b.bin"), Ok(vec![1, 2]));
        assert_eq!(fetch("data:application/octet-stream;base64,AQI="), Ok(vec![1, 2]));
        for wrong in ["../a.bin", "%2e%2e/a.bin", "/etc/passwd", "http://a/b", "a/../../b"] {
            assert!(fetch(wrong).is_err_and(|e| e.contains("leads out")), "{wrong}");
        }
        assert!(fetch("data:x,AQI=").is_err_and(|e| e.contains("base 64")));
        assert!(fetch("none.bin").is_err_and(|e| e.contains("cannot be read")));
    }

    #[test]
    fn ends_of_arrays_do_not_overflow() {
        assert_eq!(end(4, 12, 3, 12), Some(40));
        assert_eq!(end(4, 16, 3, 12), Some(48));
        assert_eq!(end(0, 12, 0, 12), None);
        assert_eq!(end(0, usize::MAX / 2, 4, 12), None);
        assert_eq!(end(usize::MAX, 1, 1, 1), None);
    }
}
