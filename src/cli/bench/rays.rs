//! Benchmark of the BVH: building it over a mesh, refitting it, and ray intersection.

use std::f32::consts::TAU;
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use glam::Vec3;
use serde::Serialize;

use super::BenchArgs;
use crate::cli::Outcome;
use crate::output::streams::print_line;
use crate::resident::bvh::Bvh;
use crate::resident::layout::{BlockRecord, NodeRecord, Triangle};
use crate::scene::MeshFormat;
use crate::transport::rays::random::{Counter, Key, Pass, pass_key, random_uniform};
use crate::transport::scene::bvh::{Level, Ray, TrianglesAlone, intersect_at};

/// Repetitions; the fastest counts.
const REPETITIONS: u32 = 5;

/// Offset of the rays' origins from the surface, relative to the longest edge of the mesh's bounding box.
const OFFSET: f32 = 1e-5;

#[derive(Debug, Serialize)]
struct Figures {
    triangles: usize,
    threads: usize,
    build_ms: f64,
    /// Refitting all boxes to vertices that have moved.
    refit_ms: f64,
    nodes: usize,
    blocks: usize,
    bytes: usize,
    rays: u32,
    hits: usize,
    levels: Vec<Rate>,
}

/// Nearest hits per second of one thread with an instruction set.
#[derive(Debug, Serialize)]
struct Rate {
    level: String,
    rays_per_second: f64,
}

pub(super) fn run(args: &BenchArgs) -> anyhow::Result<Outcome> {
    let path = args
        .file
        .as_deref()
        .context("`prbopt bench rays` has no mesh: name a PLY or OBJ file")?;
    let triangles = read(path)?;
    let mut bvh = Bvh::default();
    let build = best(|| bvh = Bvh::new(&triangles, &[]));
    let refit = best(|| bvh.refit(&triangles, &[]));
    let rays = rays(&triangles, &bvh, args.rays, pass_key(args.seed, 0, Pass::Primal));
    let mut hits = 0;
    let mut levels = Vec::new();
    for level in Level::all() {
        let time = best(|| {
            let is_hit = |ray: &&Ray| intersect_at(level, &bvh, ray, &TrianglesAlone).is_some();
            hits = rays.iter().filter(is_hit).count();
        });
        levels.push(Rate {
            level: format!("{level:?}").to_lowercase(),
            rays_per_second: rays.len() as f64 / time,
        });
    }
    let figures = Figures {
        triangles: triangles.len(),
        threads: rayon::current_num_threads(),
        build_ms: build * 1e3,
        refit_ms: refit * 1e3,
        nodes: bvh.nodes.len(),
        blocks: bvh.blocks.len(),
        bytes: bvh.nodes.len() * size_of::<NodeRecord>() + bvh.blocks.len() * size_of::<BlockRecord>(),
        rays: args.rays,
        hits,
        levels,
    };
    print(&figures, args.json)?;
    Ok(Outcome::Done)
}

/// The triangles of a file with nonzero area.
fn read(path: &Path) -> anyhow::Result<Vec<Triangle>> {
    let is_obj = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("obj"));
    let format = if is_obj { MeshFormat::Obj } else { MeshFormat::Ply };
    let mesh = format.read(path, true, false)?;
    let corners = |t: &[u32; 3]| t.map(|v| mesh.positions[v as usize]);
    let triangles: Vec<Triangle> = mesh.triangles.iter().map(corners).collect();
    let triangles: Vec<Triangle> = triangles.into_iter().filter(|t| normal(t).length() > 0.0).collect();
    anyhow::ensure!(
        !triangles.is_empty(),
        "{}: no triangle has an area; expected a surface that rays can leave",
        path.display()
    );
    Ok(triangles)
}

/// The normal, with twice the triangle's area as length.
fn normal(triangle: &Triangle) -> Vec3 {
    let [a, b, c] = triangle.map(Vec3::from_array);
    (b - a).cross(c - a)
}

/// Seconds of the fastest of several runs.
fn best(mut run: impl FnMut()) -> f64 {
    let time = |_| {
        let begin = Instant::now();
        run();
        begin.elapsed().as_secs_f64()
    };
    (0..REPETITIONS).map(time).fold(f64::INFINITY, f64::min)
}

/// Rays in random order, with origins uniform by area and directions cosine-distributed about the normals.
fn rays(triangles: &[Triangle], bvh: &Bvh, count: u32, key: Key) -> Vec<Ray> {
    let mut sums = Vec::with_capacity(triangles.len());
    let mut sum = 0.0;
    for triangle in triangles {
        sum += f64::from(normal(triangle).length());
        sums.push(sum);
    }
    let [low, high] = bvh.bounds.map(Vec3::from_array);
    let offset = OFFSET * (high - low).max_element();
    let ray = |pixel: u32| {
        let draw = |block| {
            let counter = Counter {
                pixel,
                sensor: 0,
                sample: 0,
                block,
            };
            random_uniform(key, counter)
        };
        let ([p, s, w, _], [x, y, ..]) = (draw(0), draw(1));
        let at = sums
            .partition_point(|&s| s < f64::from(p) * sum)
            .min(triangles.len() - 1);
        let [a, b, c] = triangles[at].map(Vec3::from_array);
        let s = s.sqrt();
        let point = (1.0 - s) * a + s * (1.0 - w) * b + s * w * c;
        let normal = normal(&triangles[at]).normalize();
        let z = 2.0 * x - 1.0;
        let r = (1.0 - z * z).max(0.0).sqrt();
        // Cosine-distributed direction: the normal plus a uniform point of the unit sphere.
        let direction = normal + Vec3::new(r * (TAU * y).cos(), r * (TAU * y).sin(), z);
        Ray {
            origin: (point + offset * normal).to_array(),
            direction: direction.try_normalize().unwrap_or(normal).to_array(),
            t_min: 0.0,
            t_max: f32::INFINITY,
        }
    };
    (0..count).map(ray).collect()
}

fn print(figures: &Figures, json: bool) -> anyhow::Result<()> {
    if json {
        print_line(&serde_json::to_string(figures)?);
        return Ok(());
    }
    let mebibytes = figures.bytes as f64 / f64::from(1 << 20);
    print_line(&format!("{} triangles", figures.triangles));
    print_line(&format!(
        "  build {:.1} ms, refit {:.1} ms on {} threads",
        figures.build_ms, figures.refit_ms, figures.threads
    ));
    print_line(&format!(
        "  {} nodes, {} blocks, {mebibytes:.1} MiB",
        figures.nodes, figures.blocks
    ));
    print_line(&format!("  {} of {} rays hit", figures.hits, figures.rays));
    for rate in &figures.levels {
        let millions = rate.rays_per_second * 1e-6;
        print_line(&format!(
            "  {millions:.3} million rays a second on one thread, {}",
            rate.level
        ));
    }
    Ok(())
}
