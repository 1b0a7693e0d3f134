//! COLMAP's binary files: little endian, unpadded. Allocation is bounded by the file's length, not by its counts.

use super::{Camera, Cameras, ImageRecord, MODELS, Parsed};

/// The unread part of a file.
struct Cursor<'a> {
    rest: &'a [u8],
    length: usize,
}

impl<'a> Cursor<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            length: bytes.len(),
        }
    }

    fn take(&mut self, count: usize) -> Parsed<&'a [u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            let at = self.length - self.rest.len();
            return Err(format!(
                "ends at byte {}, expected {count} more from byte {at} on: it is truncated or damaged",
                self.length
            ));
        };
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        self.take(N).map(|bytes| {
            bytes
                .try_into()
                .expect("take returns as many bytes as it was asked for")
        })
    }

    fn u32(&mut self) -> Parsed<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Parsed<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn f64(&mut self) -> Parsed<f64> {
        self.array().map(f64::from_le_bytes)
    }

    fn f64s<const N: usize>(&mut self) -> Parsed<[f64; N]> {
        let mut values = [0.0; N];
        for v in &mut values {
            *v = self.f64()?;
        }
        Ok(values)
    }

    /// Skips `count` records.
    fn skip(&mut self, count: u64, bytes_each: usize) -> Parsed<()> {
        let bytes = usize::try_from(count)
            .ok()
            .and_then(|n| n.checked_mul(bytes_each))
            .unwrap_or(usize::MAX);
        self.take(bytes).map(|_| ())
    }

    /// Text up to a zero byte.
    fn text(&mut self) -> Parsed<String> {
        let end = self
            .rest
            .iter()
            .position(|&b| b == 0)
            .ok_or("ends within a name: it is truncated or damaged")?;
        let bytes = self.take(end + 1)?;
        String::from_utf8(bytes[..end].to_vec()).map_err(|_| "holds a name that is not UTF-8".into())
    }

    /// A count of records that each take at least `bytes_each`.
    fn count(&mut self, what: &str, bytes_each: usize) -> Parsed<usize> {
        let (claimed, room) = (self.u64()?, self.rest.len() / bytes_each);
        match usize::try_from(claimed) {
            Ok(count) if count <= room => Ok(count),
            _ => Err(format!(
                "claims {claimed} {what} but has room for {room} at most: it is truncated or damaged"
            )),
        }
    }
}

pub(super) fn cameras(bytes: &[u8]) -> Parsed<Cameras> {
    let mut file = Cursor::new(bytes);
    let count = file.count("cameras", 24)?;
    let mut cameras = Cameras::with_capacity(count);
    for _ in 0..count {
        let (id, model) = (file.u32()?, file.u32()?);
        let Some(&(name, parameters)) = MODELS.get(model as usize) else {
            return Err(format!(
                "camera {id} is of model number {model}, which is not supported"
            ));
        };
        let (width, height) = (file.u64()?, file.u64()?);
        let parameters = (0..parameters).map(|_| file.f64()).collect::<Parsed<Vec<f64>>>()?;
        cameras.insert(
            id,
            Camera {
                model: name.into(),
                width,
                height,
                parameters,
            },
        );
    }
    Ok(cameras)
}

pub(super) fn images(bytes: &[u8]) -> Parsed<Vec<ImageRecord>> {
    let mut file = Cursor::new(bytes);
    let count = file.count("images", 73)?;
    let mut images = Vec::with_capacity(count);
    for _ in 0..count {
        let _id = file.u32()?;
        let (rotation, translation) = (file.f64s()?, file.f64s()?);
        let (camera, name) = (file.u32()?, file.text()?);
        let observations = file.u64()?;
        file.skip(observations, 24)?;
        images.push(ImageRecord {
            rotation,
            translation,
            camera,
            name,
        });
    }
    Ok(images)
}

pub(super) fn points(bytes: &[u8]) -> Parsed<Vec<[f32; 3]>> {
    let mut file = Cursor::new(bytes);
    let count = file.count("points", 51)?;
    let mut points = Vec::with_capacity(count);
    for _ in 0..count {
        let _id = file.u64()?;
        let position = file.f64s::<3>()?.map(|v| v as f32);
        file.skip(1, 3 + 8)?;
        let observations = file.u64()?;
        file.skip(observations, 8)?;
        if position.iter().any(|v| !v.is_finite()) {
            return Err("holds a point that is not finite".into());
        }
        points.push(position);
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(position: [f64; 3]) -> Vec<u8> {
        let position = position.map(f64::to_le_bytes);
        [
            &7u64.to_le_bytes(),
            position.as_flattened(),
            &[1, 2, 3],
            &[0; 8],
            &[0; 8],
        ]
        .concat()
    }

    /// A point that no image observes takes the minimum of 51 bytes. A count that fits the file is read; one more is
    /// refused before memory is reserved.
    #[test]
    fn as_many_points_as_there_is_room_for_are_read() {
        let two = [point([1.0, 2.0, 3.0]), point([-4.0, 5.5, 6.0])].concat();
        assert_eq!(two.len(), 102);
        let with_count = |count: u64| [&count.to_le_bytes()[..], &two].concat();
        assert_eq!(points(&with_count(2)), Ok(vec![[1.0, 2.0, 3.0], [-4.0, 5.5, 6.0]]));
        assert!(points(&with_count(3)).is_err());
        let broken = [&1u64.to_le_bytes()[..], &point([1.0, f64::INFINITY, 0.0])].concat();
        assert_eq!(points(&broken), Err("holds a point that is not finite".into()));
    }

    /// An image without a name or observations takes 73 bytes.
    #[test]
    fn as_many_images_as_there_is_room_for_are_read() {
        let image = |name: &str, observations: u64| {
            let pose: Vec<u8> = (1..8).flat_map(|i| f64::from(i).to_le_bytes()).collect();
            let (name, keypoints) = (name.as_bytes(), vec![9; 24 * observations as usize]);
            [
                &[4, 0, 0, 0],
                &pose[..],
                &[5, 0, 0, 0],
                name,
                &[0],
                &observations.to_le_bytes(),
                &keypoints,
            ]
            .concat()
        };
        assert_eq!(image("", 0).len(), 73);
        let file = [&2u64.to_le_bytes()[..], &image("", 0), &image("", 0)].concat();
        assert_eq!(images(&file).map(|all| all.len()), Ok(2));
        let file = [&2u64.to_le_bytes()[..], &image("a.png", 2), &image("b", 0)].concat();
        let read = images(&file).expect("whole");
        assert_eq!(
            (read[0].rotation, read[0].translation),
            ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0])
        );
        assert_eq!(
            (read[0].camera, &read[0].name[..], &read[1].name[..]),
            (5, "a.png", "b")
        );
    }

    /// Errors state the byte from which data is missing; a camera takes 24 bytes and its parameters.
    #[test]
    fn places_and_room_are_told() {
        let mut file = Cursor::new(&[1, 2, 3, 4, 5, 6]);
        assert_eq!(file.u32(), Ok(0x0403_0201));
        assert_eq!(
            file.u32(),
            Err("ends at byte 6, expected 4 more from byte 4 on: it is truncated or damaged".into())
        );
        assert_eq!(file.skip(1, 2), Ok(()));
        assert!(
            file.skip(1, 1)
                .is_err_and(|e| e.contains("expected 1 more from byte 6 on"))
        );
        assert!(
            Cursor::new(&[0; 9])
                .skip(u64::MAX, 24)
                .is_err_and(|e| e.contains(&format!("expected {} more", usize::MAX)))
        );
        let one: Vec<u8> = [
            &3u64.to_le_bytes()[..],
            &[7, 0, 0, 0, 1, 0, 0, 0],
            &640u64.to_le_bytes(),
            &480u64.to_le_bytes(),
            &[1.0f64, 2.0, 3.0, 4.0].map(f64::to_le_bytes).concat(),
        ]
        .concat();
        let claims = |count: u64, what: &str, room: usize| {
            format!("claims {count} {what} but has room for {room} at most: it is truncated or damaged")
        };
        assert_eq!(cameras(&one).expect_err("one of three"), claims(3, "cameras", 2));
        assert_eq!(
            images(&[&2u64.to_le_bytes()[..], &[0; 145]].concat()).map(drop),
            Err(claims(2, "images", 1))
        );
        assert_eq!(
            points(&[&2u64.to_le_bytes()[..], &[0; 101]].concat()),
            Err(claims(2, "points", 1))
        );
        let whole = cameras(&[&1u64.to_le_bytes()[..], &one[8..]].concat()).expect("whole");
        let camera = &whole[&7];
        assert_eq!((&camera.model[..], camera.width, camera.height), ("PINHOLE", 640, 480));
        assert_eq!(camera.parameters, [1.0, 2.0, 3.0, 4.0]);
    }
}
