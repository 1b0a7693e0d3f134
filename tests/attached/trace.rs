//! A second implementation of paths through smooth glass and between mirrors: cameras, rectangles, spheres and flat triangles,
//! which may move, are intersected, reflected, refracted and looked up in f64 with the choices of a path given, so that
//! differences of its radiance are derivatives of the whole path.

use prbopt::resident::layout::{NONE, Rows, TextureRecord, background, leaf, surface};
use prbopt::resident::motion::Motion;
use prbopt::transport::scene::bsdf::fresnel::{fresnel, fresnel_conductor};
use prbopt::transport::scene::records::SceneView;

type V = [f64; 3];

/// Least length of an edge of a path.
const NEAR: f64 = 1e-4;

fn dot(a: V, b: V) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn add(a: V, b: V, t: f64) -> V {
    [0, 1, 2].map(|k| a[k] + t * b[k])
}

fn cross(a: V, b: V) -> V {
    [0, 1, 2].map(|k| a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3])
}

fn unit(a: V) -> V {
    a.map(|x| x / dot(a, a).sqrt())
}

/// The values of all parameters, and those that the records were made from.
pub(crate) struct Values<'a> {
    pub now: &'a [Vec<f64>],
    pub recorded: &'a [Vec<f64>],
}

/// `x` rotated about `axis` by the length of `axis` in degrees.
fn turned(axis: V, x: V) -> V {
    let degrees = dot(axis, axis).sqrt();
    if degrees == 0.0 {
        return x;
    }
    let (axis, (sine, cosine)) = (unit(axis), degrees.to_radians().sin_cos());
    let along = dot(axis, x) * (1.0 - cosine);
    add(add(x.map(|x| x * cosine), cross(axis, x), sine), axis, along)
}

/// The axes and the origin of a surface in world space, at the current values.
fn place(view: &SceneView, number: usize, values: &Values) -> ([V; 3], V) {
    let rows: Rows = view.surfaces[number].to_world;
    let column = |c: usize| rows.map(|row| f64::from(row[c]));
    let (axes, shift) = ([0, 1, 2].map(column), column(3));
    match view.motions.get(number).copied().flatten() {
        Some(motion) => moved(&motion, values, axes, shift),
        None => (axes, shift),
    }
}

/// A ray of the scene's first camera, whose pose is that of the current values.
pub(crate) fn ray(view: &SceneView, values: &Values, (origin, direction): (V, V)) -> (V, V) {
    let first = view.surfaces.len() + view.lights.len();
    match view.motions.get(first).copied().flatten() {
        Some(motion) => {
            let ([direction], origin) = moved(&motion, values, [direction], origin);
            (origin, direction)
        }
        None => (origin, direction),
    }
}

/// Vectors and a point of an object that moves: from where the records have them to where the current values put them.
fn moved<const VECTORS: usize>(motion: &Motion, values: &Values, vectors: [V; VECTORS], point: V) -> ([V; VECTORS], V) {
    let part = |all: &[Vec<f64>], slot: u32, otherwise: f64| match slot {
        NONE => [otherwise; 3],
        slot => [0, 1, 2].map(|k| all[slot as usize][k % all[slot as usize].len()]),
    };
    let of =
        |all| [(motion.translate, 0.0), (motion.rotate, 0.0), (motion.scale, 1.0)].map(|(slot, x)| part(all, slot, x));
    let [[moved, turn, scale], [before, back, size]] = [of(values.now), of(values.recorded)];
    let carry = |v: V| {
        let rest = turned(back.map(|x| -x), v);
        turned(turn, [0, 1, 2].map(|k| rest[k] / size[k] * scale[k]))
    };
    let pivot = motion.pivot.map(f64::from);
    let arm = add(add(point, pivot, -1.0), before, -1.0);
    (vectors.map(carry), add(add(carry(arm), pivot, 1.0), moved, 1.0))
}

/// Where a path meets a surface.
struct Met {
    surface: usize,
    t: f64,
    p: V,
    uv: [f64; 2],
    n: V,
    along_u: V,
}

/// The nearest surface along a ray.
fn meet(view: &SceneView, values: &Values, origin: V, direction: V) -> Option<Met> {
    let all = (0..view.surfaces.len()).filter_map(|surface| meet_one(view, values, surface, origin, direction));
    all.min_by(|a, b| a.t.total_cmp(&b.t))
}

fn meet_one(view: &SceneView, values: &Values, number: usize, origin: V, direction: V) -> Option<Met> {
    let record = &view.surfaces[number];
    if record.kind == surface::MESH {
        return meet_mesh(view, values, number, origin, direction);
    }
    // The inverse of `to_world` in f64: the record's own `to_local` is rounded to f32.
    let ([x, y, z], shift) = place(view, number, values);
    let volume = dot(x, cross(y, z));
    let rows = [cross(y, z), cross(z, x), cross(x, y)];
    let inwards = |v: V| rows.map(|row| dot(row, v) / volume);
    let (o, d) = (inwards(add(origin, shift, -1.0)), inwards(direction));
    let side = f64::from(record.side);
    let met = |t: f64, uv: [f64; 2], local: V, along_u: V| Met {
        surface: number,
        t,
        p: add(origin, direction, t),
        uv,
        n: unit([0, 1, 2].map(|a| side * (0..3).map(|k| rows[k][a] / volume * local[k]).sum::<f64>())),
        along_u: [0, 1, 2].map(|a| x[a] * along_u[0] + y[a] * along_u[1] + z[a] * along_u[2]),
    };
    match record.kind {
        surface::RECTANGLE => {
            let t = -o[2] / d[2];
            let p = add(o, d, t);
            let inside = t > NEAR && p[0].abs() <= 1.0 && p[1].abs() <= 1.0;
            let uv = [0.5 * p[0] + 0.5, 0.5 * p[1] + 0.5];
            inside.then(|| met(t, uv, [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]))
        }
        surface::SPHERE => {
            let (a, b, c) = (dot(d, d), dot(o, d), dot(o, o) - 1.0);
            let root = (b * b - a * c).sqrt();
            let t = [(-b - root) / a, (-b + root) / a].into_iter().find(|t| *t > NEAR)?;
            let p = unit(add(o, d, t));
            let turns = p[1].atan2(p[0]) / std::f64::consts::TAU;
            let uv = [turns - turns.floor(), p[2].acos() / std::f64::consts::PI];
            Some(met(t, uv, p, [-p[1], p[0], 0.0]))
        }
        _ => panic!("rectangles, spheres and meshes alone"),
    }
}

/// The nearest triangle of a mesh whose vertices are a parameter.
fn meet_mesh(view: &SceneView, values: &Values, number: usize, origin: V, direction: V) -> Option<Met> {
    let motion = view.motions[number].expect("its vertices are a parameter");
    let slot = view.meshes[motion.mesh as usize].slot as usize;
    let vertex = |v: u32| [0, 1, 2].map(|k| values.now[slot][3 * v as usize + k]);
    let of_mesh = view.corners.iter().filter(|corner| corner.shape as usize == number);
    let met = of_mesh.filter_map(|corner| {
        let [a, b, c] = corner.vertices().map(vertex);
        let (ab, ac) = (add(b, a, -1.0), add(c, a, -1.0));
        let face = cross(ab, ac);
        let t = dot(face, add(a, origin, -1.0)) / dot(face, direction);
        let p = add(origin, direction, t);
        let from = add(p, a, -1.0);
        let shares = [dot(cross(from, ac), face), dot(cross(ab, from), face)].map(|x| x / dot(face, face));
        let inside = t > NEAR && shares[0] >= 0.0 && shares[1] >= 0.0 && shares[0] + shares[1] <= 1.0;
        let side = f64::from(view.surfaces[number].side);
        inside.then(|| Met {
            surface: number,
            t,
            p,
            uv: [0.0; 2],
            n: unit(face.map(|x| side * x)),
            along_u: ab,
        })
    });
    met.min_by(|a, b| a.t.total_cmp(&b.t))
}

/// A bilinear lookup between clamped texels.
fn look(record: &TextureRecord, data: &[f64], uv: [f64; 2]) -> V {
    let [w, h] = record.size.map(i64::from);
    let (x, y) = (uv[0] * w as f64 - 0.5, uv[1] * h as f64 - 0.5);
    let (i, j) = (x.floor(), y.floor());
    let at = |di: i64, dj: i64| {
        let (column, row) = ((i as i64 + di).clamp(0, w - 1), (j as i64 + dj).clamp(0, h - 1));
        let texel = (row * w + column) as usize * 3;
        [data[texel], data[texel + 1], data[texel + 2]]
    };
    let (fx, fy) = (x - i, y - j);
    let mut sum = [0.0; 3];
    for (dj, wy) in [(0, 1.0 - fy), (1, fy)] {
        for (di, wx) in [(0, 1.0 - fx), (1, fx)] {
            sum = add(sum, at(di, dj), wx * wy);
        }
    }
    sum
}

/// The radiance of an environment map of bilinear texels, whose first and last rows are the poles.
fn sky(view: &SceneView, values: &[Vec<f64>], direction: V) -> V {
    let rows = view.common.world_to_env;
    let [x, y, z] = unit(rows.map(|row| (0..3).map(|k| f64::from(row[k]) * direction[k]).sum()));
    let [w, h] = view.common.env_size.map(|size| size as usize);
    let turns = x.atan2(-z) / std::f64::consts::TAU - 0.5 / w as f64;
    let (across, down) = (
        (turns - turns.floor()) * w as f64,
        y.acos() / std::f64::consts::PI * (h - 1) as f64,
    );
    let (i, j) = (across as usize % w, (down as usize).min(h - 2));
    let (fx, fy) = (across - i as f64, down - j as f64);
    let data = &values[view.background as usize];
    let texel = |di: usize, dj: usize, c: usize| data[3 * ((j + dj) * w + (i + di) % w) + c];
    let scale = values[view.common.env_scale_slot as usize][0];
    [0, 1, 2].map(|c| {
        let row = |dj: usize| (1.0 - fx) * texel(0, dj, c) + fx * texel(1, dj, c);
        scale * ((1.0 - fy) * row(0) + fy * row(1))
    })
}

/// The contribution of a path.
pub(crate) struct Brought {
    pub radiance: V,
    /// Probability of the path's choices between reflection and refraction.
    pub probability: f64,
    /// Whether it ends at a diffuse plane; `radiance` then has the plane's reflectance in the place of its radiance.
    pub scattered: bool,
}

/// The contribution of the path whose vertices reflect (true) or refract. `None` where there is no such path.
pub(crate) fn radiance(view: &SceneView, all: &Values, seen: (V, V), reflects: &[bool]) -> Option<Brought> {
    let values = all.now;
    let (mut origin, mut direction) = ray(view, all, seen);
    let (mut weight, mut probability) = ([1.0; 3], 1.0);
    for &reflect in reflects {
        let met = meet(view, all, origin, direction)?;
        let back = direction.map(|x| -x);
        let record = &view.bsdfs[view.surfaces[met.surface].bsdf as usize];
        let [first, count] = if dot(back, met.n) > 0.0 {
            record.front
        } else {
            record.back
        };
        let turned_at = (count == 1).then(|| &view.leaves[first as usize])?;
        if turned_at.kind == leaf::DIFFUSE {
            return None;
        }
        let value = |which: u32| &values[view.textures[(turned_at.first_texture + which) as usize].slot as usize];
        let m = normal(view, values, &met, back, turned_at.relief);
        let cosine = dot(back, m);
        let next;
        if turned_at.kind == leaf::CONDUCTOR {
            let (eta, k) = (value(0), value(1));
            let of = |v: &[f64], c: usize| v[c % v.len()];
            weight = [0, 1, 2].map(|c| weight[c] * fresnel_conductor(cosine, of(eta, c), of(k, c)));
            next = reflect.then(|| add(direction, m, 2.0 * cosine))?;
        } else {
            assert_eq!(turned_at.kind, leaf::DIELECTRIC, "no other smooth surface is known");
            let f = fresnel(cosine, value(0)[0]);
            // The index on the path's side over that on the other side.
            let (e, m) = if cosine > 0.0 {
                (1.0 / value(0)[0], m)
            } else {
                (value(0)[0], m.map(|x| -x))
            };
            let (cosine, share) = (cosine.abs(), if reflect { f } else { (1.0 - f) * e * e });
            weight = weight.map(|x| x * share);
            probability *= if reflect { f } else { 1.0 - f };
            next = match reflect {
                true => add(direction, m, 2.0 * cosine),
                false => {
                    let square = 1.0 - e * e * (1.0 - cosine * cosine);
                    (square > 0.0).then(|| add(direction.map(|x| e * x), m, e * cosine - square.sqrt()))?
                }
            };
        }
        // The next direction must be on the same side of the surface as of its turned normal.
        let through = dot(next, met.n) * dot(back, met.n) < 0.0;
        if through == reflect {
            return None;
        }
        (origin, direction) = (met.p, next);
    }
    let brought = |shown: V, scattered: bool| {
        Some(Brought {
            radiance: [0, 1, 2].map(|c| weight[c] * shown[c]),
            probability,
            scattered,
        })
    };
    let Some(met) = meet(view, all, origin, direction) else {
        let is_map = view.common.background == background::ENVMAP;
        return is_map.then(|| brought(sky(view, values, direction), false))?;
    };
    if dot(direction, met.n) >= 0.0 {
        return None;
    }
    let record = &view.surfaces[met.surface];
    let picture = |texture: u32| {
        let picture = &view.textures[texture as usize];
        look(picture, &values[picture.slot as usize], met.uv)
    };
    if record.light != NONE {
        return brought(picture(view.lights[record.light as usize].texture), false);
    }
    let plane = &view.leaves[view.bsdfs[record.bsdf as usize].front[0] as usize];
    (plane.kind == leaf::DIFFUSE).then(|| brought(picture(plane.first_texture), true))?
}

/// The normal that reflects or refracts a path coming from `back`: the normal map's, if there is one.
fn normal(view: &SceneView, values: &[Vec<f64>], met: &Met, back: V, relief: u32) -> V {
    if relief == NONE {
        return met.n;
    }
    let record = &view.textures[relief as usize];
    let texel = look(record, &values[record.slot as usize], met.uv).map(|x| 2.0 * x - 1.0);
    let s = unit(add(met.along_u, met.n, -dot(met.along_u, met.n)));
    let t = cross(met.n, s);
    let from = [s, t, met.n].map(|axis| dot(axis, back));
    let flips = dot(texel, from) * from[2] <= 0.0;
    let sign = if flips { -1.0 } else { 1.0 };
    let along = [sign * texel[0], sign * texel[1], texel[2]];
    unit([0, 1, 2].map(|a| s[a] * along[0] + t[a] * along[1] + met.n[a] * along[2]))
}
