//! Meshes, images on surfaces and shining shapes on both devices.

use std::path::Path;

use glam::{Affine2, Affine3A, Mat2, Quat, Vec2, Vec3};
use prbopt::device::cpu::Cpu;
use prbopt::device::gpu::Options;
use prbopt::io::image::write_png;
use prbopt::io::{Grid, Image, vol};
use prbopt::params::{Kind, Shape, Tuning};
use prbopt::resident::bvh::FEW_SHAPES;
use prbopt::scene::{
    Array, Background, Bsdf, Geometry, Gradient, MeshFormat, Source, Surface, Texture, TextureMap, World, Wrap,
};
use tempfile::TempDir;

use super::gpu;
use super::scenes::noise;
use super::world_cases::{Case, area_emitter, case, constant, cube, envmap, sky, smoke, surface, value};
use super::worlds::{compare, run};

/// Pixels of the image of noise.
const NOISE: [usize; 3] = [7, 5, 1];

/// A folder with an image of noise, a lumpy ball as a mesh, and another as signed distances.
pub(super) fn files() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let image = Image {
        width: NOISE[0],
        height: NOISE[1],
        channels: 3,
        data: (0..105).map(|i| noise(9, i).clamp(0.0, 1.0)).collect(),
    };
    write_png(&folder.path().join("noise.png"), &image).expect("is written");
    let (rings, columns) = (9, 14);
    let mut text = String::new();
    for i in 0..=rings {
        for j in 0..=columns {
            let (v, u) = (i as f32 / rings as f32, j as f32 / columns as f32);
            let (theta, phi) = (std::f32::consts::PI * v, std::f32::consts::TAU * (u % 1.0));
            let sine = if i == 0 || i == rings { 0.0 } else { theta.sin() };
            let radius = 1.0 + 0.15 * (3.0 * phi).sin() * sine + 0.1 * (5.0 * theta).cos();
            let p = Vec3::new(sine * phi.cos(), theta.cos(), -sine * phi.sin()) * radius;
            text += &format!("v {} {} {}\nvt {u} {v}\n", p.x, p.y, p.z);
        }
    }
    for i in 0..rings {
        for j in 0..columns {
            let at = |i: usize, j: usize| i * (columns + 1) + j + 1;
            let [a, b, c, d] = [at(i, j), at(i + 1, j), at(i + 1, j + 1), at(i, j + 1)];
            text += &format!("f {a}/{a} {b}/{b} {c}/{c}\nf {a}/{a} {c}/{c} {d}/{d}\n");
        }
    }
    std::fs::write(folder.path().join("ball.obj"), text).expect("is written");
    write_distances(&folder.path().join("ball.vol"));
    folder
}

/// Signed distances of a lumpy ball, with different numbers of points along the axes.
fn write_distances(path: &Path) {
    let size = [9usize, 12, 7];
    let mut data = Vec::new();
    for i in 0..size.iter().product() {
        let place = [i % size[0], i / size[0] % size[1], i / size[0] / size[1]];
        let p = Vec3::from_array([0, 1, 2].map(|a| place[a] as f32 / (size[a] - 1) as f32 - 0.5));
        data.push(p.length() - 0.35 + 0.08 * noise(4, i));
    }
    let grid = Grid {
        size,
        channels: 1,
        bounds: [[0.0; 3], [1.0; 3]],
        data,
    };
    vol::write(path, &grid).expect("is written");
}

/// The zero level of these distances as a shape, turned and stretched.
fn level(folder: &Path, smooth: bool, bsdf: Bsdf) -> Surface {
    let path = folder.join("ball.vol");
    let around = Affine3A::from_scale_rotation_translation(
        Vec3::new(1.6, 1.2, 1.4),
        Quat::from_rotation_y(0.7),
        Vec3::new(0.2, 0.1, 0.4),
    );
    let to_world = around * Affine3A::from_translation(Vec3::splat(-0.5));
    surface(Geometry::Distances { path, smooth }, to_world, bsdf, [None; 2])
}

fn ball(folder: &Path, face_normals: bool) -> Geometry {
    Geometry::Mesh {
        path: folder.join("ball.obj"),
        format: MeshFormat::Obj,
        face_normals,
        flip_tex_coords: true,
    }
}

fn image(folder: &Path, nearest: bool, wrap: Wrap) -> Bsdf {
    Bsdf::diffuse(Texture::Bitmap(TextureMap {
        data: Array {
            path: format!("floor.bsdf.{nearest}.{wrap:?}"),
            kind: Kind::Texture,
            shape: Shape {
                size: NOISE,
                channels: 3,
            },
            source: Source::Reflectance {
                path: folder.join("noise.png"),
                raw: nearest,
            },
            tuning: Some(Tuning {
                learning_rate: 1e-3,
                bounds: [0.0, 1.0],
                smoothing: 0.0,
            }),
        },
        nearest,
        wrap,
        to_uv: Affine2 {
            matrix2: Mat2::from_scale_angle(Vec2::new(1.7, 2.3), 0.4),
            translation: Vec2::new(-0.6, 0.2),
        },
    }))
}

fn placed(scale: f32, angle: f32, at: [f32; 3]) -> Affine3A {
    Affine3A::from_scale_rotation_translation(Vec3::splat(scale), Quat::from_rotation_y(angle), Vec3::from(at))
}

fn painted() -> Bsdf {
    Bsdf::diffuse(Texture::Constant(value(
        "level.reflectance",
        &[0.7, 0.3, 0.5],
        [0.0, 1.0],
    )))
}

/// A floor with an image under the smoke.
fn floor(folder: &Path, nearest: bool, wrap: Wrap) -> Surface {
    let lying = Affine3A::from_scale_rotation_translation(
        Vec3::splat(3.0),
        Quat::from_rotation_x(-0.5 * std::f32::consts::PI),
        Vec3::new(0.0, -1.2, 0.0),
    );
    surface(Geometry::Rectangle, lying, image(folder, nearest, wrap), [None; 2])
}

fn shining(mut shape: Surface, name: &str) -> Surface {
    shape.emitter = area_emitter(value(&format!("{name}.radiance"), &[3.0, 4.0, 2.0], [0.0, 100.0]));
    shape.bsdf = Bsdf::diffuse(Texture::Constant(value(
        &format!("{name}.reflectance"),
        &[0.3, 0.1, 0.2],
        [0.0, 1.0],
    )));
    shape.bsdf_path = format!("{name}.bsdf");
    shape
}

fn world(surfaces: Vec<Surface>) -> World {
    World {
        surfaces,
        media: vec![smoke()],
        ..World::default()
    }
}

/// More shapes than rays are tested against in turn, so that a BVH is built over them.
fn tiles() -> impl Iterator<Item = Surface> {
    (0..FEW_SHAPES + 1).map(|i| {
        let [x, y, z] = [i % 4, i / 4 % 4, i / 16].map(|k| 0.6 * k as f32 - 0.9);
        let to_world = placed(0.2, 0.4 * i as f32, [x, y, z - 1.2]);
        surface(Geometry::Rectangle, to_world, painted(), [None; 2])
    })
}

/// A mesh in the middle.
fn gem(folder: &Path, face_normals: bool, bsdf: Bsdf) -> Surface {
    let to_world = placed(0.5, -0.5, [0.1, 0.1, 0.2]);
    surface(ball(folder, face_normals), to_world, bsdf, [None; 2])
}

/// A mesh among many shapes, and no media.
pub(super) fn among_many(folder: &Path) -> Case {
    let surfaces = tiles().chain([gem(folder, false, image(folder, false, Wrap::Clamp))]);
    let world = World {
        surfaces: surfaces.collect(),
        ..World::default()
    };
    case("a mesh among many shapes", world, envmap(), Gradient::FreeFlight)
}

fn cases(folder: &Path) -> Vec<Case> {
    use Gradient::{Drt, FreeFlight};
    let mesh = |face_normals, to_world, bsdf, media| surface(ball(folder, face_normals), to_world, bsdf, media);
    let clear = || mesh(true, placed(0.9, 0.3, [0.0; 3]), Bsdf::Null, [Some(0), None]);
    let mut fog = smoke();
    fog.sigma_t = constant("cube.interior.sigma_t", &[0.8], 4.0);
    let mut bright = shining(cube(), "brick");
    (bright.interior, bright.to_world) = (None, placed(0.3, 0.7, [1.6, 0.9, 0.6]));
    let lamp = |face_normals| {
        shining(
            mesh(face_normals, placed(0.4, 1.0, [-1.7, 0.8, 0.3]), Bsdf::Null, [None; 2]),
            "lamp",
        )
    };
    let mut around = shining(cube(), "room");
    (around.interior, around.flip_normals, around.to_world) = (None, true, placed(8.0, 0.2, [0.0; 3]));
    let gem = |face_normals, bsdf| gem(folder, face_normals, bsdf);
    let mut cases = vec![
        case(
            "smooth mesh with a bilinear image, mirrored, envmap, drt",
            world(vec![
                cube(),
                gem(false, image(folder, false, Wrap::Mirror)),
                floor(folder, true, Wrap::Repeat),
            ]),
            envmap(),
            Drt,
        ),
        case(
            "mesh of faces, nearest and clamped images, free flight",
            world(vec![
                cube(),
                gem(true, image(folder, true, Wrap::Clamp)),
                floor(folder, false, Wrap::Clamp),
            ]),
            envmap(),
            FreeFlight,
        ),
        case("smoke in a mesh, drt", world(vec![clear()]), envmap(), Drt),
        case(
            "a smooth light beside fog in a mesh, free flight",
            World {
                media: vec![fog],
                ..world(vec![clear(), lamp(false), floor(folder, true, Wrap::Mirror)])
            },
            envmap(),
            FreeFlight,
        ),
        case(
            "smooth signed distances beside a mesh, drt",
            world(vec![
                cube(),
                level(folder, true, painted()),
                gem(true, image(folder, false, Wrap::Clamp)),
            ]),
            envmap(),
            Drt,
        ),
        case(
            "a mesh among many shapes, drt",
            world(
                tiles()
                    .chain([cube(), gem(true, image(folder, false, Wrap::Clamp))])
                    .collect(),
            ),
            envmap(),
            Drt,
        ),
        case(
            "lights on a mesh and a cube, drt",
            world(vec![
                cube(),
                lamp(true),
                bright.clone(),
                floor(folder, false, Wrap::Repeat),
            ]),
            Background::None,
            Drt,
        ),
        case(
            "in a shining room, drt",
            world(vec![around, cube(), gem(true, image(folder, false, Wrap::Repeat))]),
            Background::None,
            Drt,
        ),
    ];
    for case in cases.iter_mut().filter(|case| case.is_under_a_map()) {
        case.world.surfaces.extend(all_kinds(folder));
    }
    cases.push(case(
        "signed distances, free flight",
        world(vec![
            cube(),
            level(folder, false, painted()),
            floor(folder, false, Wrap::Repeat),
        ]),
        sky(),
        FreeFlight,
    ));
    cases
}

/// A small shape and a small light of each kind: shaders are compiled for the kinds that a world has, which takes a driver longer
/// than a test, and worlds with the same kinds have the same shaders.
fn all_kinds(folder: &Path) -> Vec<Surface> {
    let speck = |mut shape: Surface, i: usize| {
        (shape.interior, shape.to_world) = (None, placed(0.15, 0.5 * i as f32, [0.5 * i as f32 - 1.0, -1.6, 0.4]));
        shape
    };
    let ball = |bsdf| surface(ball(folder, false), Affine3A::IDENTITY, bsdf, [None; 2]);
    let shapes = [
        surface(Geometry::Cube, Affine3A::IDENTITY, painted(), [None; 2]),
        surface(Geometry::Rectangle, Affine3A::IDENTITY, painted(), [None; 2]),
        ball(image(folder, false, Wrap::Repeat)),
        level(folder, true, painted()),
        shining(cube(), "spark"),
        shining(ball(Bsdf::Null), "ember"),
    ];
    shapes
        .into_iter()
        .enumerate()
        .map(|(i, shape)| speck(shape, i))
        .collect()
}

#[test]
fn devices_agree_on_meshes_images_and_shining_shapes() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    let folder = files();
    let mut wrong = Vec::new();
    for case in cases(folder.path()) {
        let (cpu, gpu) = (run(&mut Cpu::new(), &case), run(&mut gpu, &case));
        if let Err(e) = compare(&cpu, &gpu) {
            wrong.push(format!("{}: {e}", case.name));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// The comparison sees a single fault of a surface or a light.
#[test]
fn planted_faults_in_surfaces_are_seen() {
    let folder = files();
    let folder = folder.path();
    let mut sound = cases(folder);
    let mut seen = |case: &str, what: &str, plant: &dyn Fn(&mut Surface)| {
        let at = sound.iter().position(|known| known.name.starts_with(case)).expect(case);
        let right = run(&mut Cpu::new(), &sound[at]);
        compare(&right, &run(&mut Cpu::new(), &sound[at])).expect("nothing is wrong yet");
        plant(sound[at].world.surfaces.get_mut(1).expect("a second surface"));
        compare(&right, &run(&mut Cpu::new(), &sound[at])).expect_err(what);
    };
    seen("smooth mesh", "an image that repeats", &|s| {
        s.bsdf = image(folder, false, Wrap::Repeat)
    });
    seen("smooth mesh", "another filter", &|s| {
        s.bsdf = image(folder, true, Wrap::Repeat)
    });
    seen("smooth mesh", "normals of faces", &|s| s.geometry = ball(folder, true));
    seen("lights on a mesh", "a light seen from behind", &|s| {
        s.flip_normals = true
    });
    seen("a smooth light", "a larger light", &|s| {
        s.to_world *= Affine3A::from_scale(Vec3::splat(1.05))
    });
    seen("smooth signed distances", "normals of cells", &|s| {
        s.geometry = level(folder, false, painted()).geometry
    });
}
