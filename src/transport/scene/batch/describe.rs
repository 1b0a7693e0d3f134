//! Points, normals and texture coordinates of hits in lanes, as `shape.rs` describes a single hit.

use std::hint::select_unpredictable as select;

use super::rays::{Group, Hits, LANES, Lanes, Vectors, each_lane, lanes, lanes_mut, lanes_where};
use crate::each::EachEntry;
use crate::resident::emissive_triangles::CUBE_UV;
use crate::resident::layout::{BLOCK, NONE, SurfaceRecord, surface};
use crate::transport::rays::angle::arc_cosine;
use crate::transport::rays::camera::{normalize, transform_point};
use crate::transport::rays::sampler::{cross, dot};
use crate::transport::scene::records::SceneView;
use crate::transport::scene::shape::{ROUNDING, clearance, describe_surface, turns, world_normal};

/// Describes the hits of the vector that begins at `first` on shapes that are no meshes, one shape after another.
#[inline(always)]
pub(super) fn describe_shapes(scene: &SceneView, rays: &Group, first: usize, hits: &mut Hits) {
    let (number, triangle) = (*lanes(&hits.surface, first), *lanes(&hits.triangle, first));
    let mut rest = lanes_where(|lane| (number[lane] != NONE) & (triangle[lane] == NONE));
    if rest == 0 {
        return;
    }
    let (t, part) = (*lanes(&hits.t, first), *lanes(&hits.primitive, first));
    let mut found = Found::ZERO;
    while rest != 0 {
        let one = number[rest.trailing_zeros() as usize % LANES];
        let here = rest & lanes_where(|lane| number[lane] == one);
        rest &= !here;
        let record = &scene.surfaces[one as usize];
        if record.kind == surface::DISTANCES {
            found.describe_one_by_one(scene, one, rays, here, &t, &part);
            continue;
        }
        let local = Local::new(record.kind, record, rays, &t, &part);
        found.place(record, here, &local);
    }
    for a in 0..3 {
        *lanes_mut(&mut hits.p[a], first) = found.p[a];
        *lanes_mut(&mut hits.normal[a], first) = found.normal[a];
        *lanes_mut(&mut hits.shading[a], first) = found.shading[a];
    }
    for k in 0..2 {
        *lanes_mut(&mut hits.uv[k], first) = found.uv[k];
    }
    *lanes_mut(&mut hits.clearance, first) = found.clearance;
}

/// Points in the space of a shape, their normals and texture coordinates.
struct Local {
    p: Vectors,
    normal: Vectors,
    uv: [Lanes<f32>; 2],
}

impl Local {
    #[inline(always)]
    fn new(kind: u32, record: &SurfaceRecord, rays: &Group, t: &Lanes<f32>, part: &Lanes<u32>) -> Self {
        let mut at = Self {
            p: [[0.0; LANES]; 3],
            normal: [[0.0; LANES], [0.0; LANES], [1.0; LANES]],
            uv: [[0.0; LANES]; 2],
        };
        for lane in 0..LANES {
            let (o, d) = rays.local(&record.to_local, lane);
            for a in 0..3 {
                at.p[a][lane] = o[a] + t[lane] * d[a];
            }
        }
        match kind {
            surface::CUBE => at.on_cube(part),
            surface::SPHERE => at.on_sphere(),
            surface::DISK => at.on_disk(),
            surface::CYLINDER => at.on_cylinder(),
            _ => at.on_rectangle(),
        }
        at
    }

    #[inline(always)]
    fn on_rectangle(&mut self) {
        for lane in 0..LANES {
            self.p[2][lane] = 0.0;
            self.uv[0][lane] = 0.5 * self.p[0][lane] + 0.5;
            self.uv[1][lane] = 0.5 * self.p[1][lane] + 0.5;
        }
    }

    #[inline(always)]
    fn on_cube(&mut self, part: &Lanes<u32>) {
        for lane in 0..LANES {
            let side = select(part[lane] & 1 == 1, 1.0, -1.0);
            for a in 0..3 {
                let faces = part[lane] >> 1 == a as u32;
                self.normal[a][lane] = select(faces, side, 0.0);
                self.p[a][lane] = select(faces, side, self.p[a][lane]);
            }
        }
        for lane in 0..LANES {
            let mut uv = [0.0; 2];
            for (face, axes) in CUBE_UV.iter().enumerate() {
                for k in 0..2 {
                    let (axis, sign) = axes[k];
                    let at = 0.5 * sign * self.p[axis][lane] + 0.5;
                    uv[k] = select(part[lane] == face as u32, at, uv[k]);
                }
            }
            (self.uv[0][lane], self.uv[1][lane]) = (uv[0], uv[1]);
        }
    }

    #[inline(always)]
    fn on_sphere(&mut self) {
        for lane in 0..LANES {
            let n = normalize([0, 1, 2].each(|a| self.p[a][lane]));
            for a in 0..3 {
                (self.p[a][lane], self.normal[a][lane]) = (n[a], n[a]);
            }
        }
        for lane in 0..LANES {
            let n = [0, 1, 2].each(|a| self.p[a][lane]);
            self.uv[0][lane] = turns(n);
            self.uv[1][lane] = arc_cosine(n[2].clamp(-1.0, 1.0)) * std::f32::consts::FRAC_1_PI;
        }
    }

    #[inline(always)]
    fn on_disk(&mut self) {
        for lane in 0..LANES {
            self.p[2][lane] = 0.0;
            let p = [self.p[0][lane], self.p[1][lane], 0.0];
            self.uv[0][lane] = dot(p, p).sqrt();
            self.uv[1][lane] = turns(p);
        }
    }

    #[inline(always)]
    fn on_cylinder(&mut self) {
        for lane in 0..LANES {
            let n = normalize([self.p[0][lane], self.p[1][lane], 0.0]);
            for a in 0..3 {
                self.normal[a][lane] = n[a];
            }
            (self.p[0][lane], self.p[1][lane]) = (n[0], n[1]);
            self.uv[0][lane] = turns(n);
            self.uv[1][lane] = 0.5 * self.p[2][lane] + 0.5;
        }
    }
}

/// The hits of a vector as described in the world.
struct Found {
    p: Vectors,
    uv: [Lanes<f32>; 2],
    clearance: Lanes<f32>,
    normal: Vectors,
    shading: Vectors,
}

impl Found {
    const ZERO: Self = Self {
        p: [[0.0; LANES]; 3],
        uv: [[0.0; LANES]; 2],
        clearance: [0.0; LANES],
        normal: [[0.0; LANES]; 3],
        shading: [[0.0; LANES]; 3],
    };

    /// Transforms points and normals of the lanes of `here` to the world.
    #[inline(always)]
    fn place(&mut self, record: &SurfaceRecord, here: u32, local: &Local) {
        for lane in 0..LANES {
            let is_here = here >> lane & 1 != 0;
            let at = [0, 1, 2].each(|a| local.p[a][lane]);
            let normal = world_normal(record, [0, 1, 2].each(|a| local.normal[a][lane]));
            let p = transform_point(&record.to_world, at);
            let clearance = clearance(record, at, p, normal);
            for a in 0..3 {
                self.p[a][lane] = select(is_here, p[a], self.p[a][lane]);
                self.normal[a][lane] = select(is_here, normal[a], self.normal[a][lane]);
                self.shading[a][lane] = select(is_here, normal[a], self.shading[a][lane]);
            }
            for k in 0..2 {
                self.uv[k][lane] = select(is_here, local.uv[k][lane], self.uv[k][lane]);
            }
            self.clearance[lane] = select(is_here, clearance, self.clearance[lane]);
        }
    }

    /// Describes the hits of the lanes of `here` on a shape given by distances.
    #[inline(always)]
    fn describe_one_by_one(
        &mut self,
        scene: &SceneView,
        number: u32,
        rays: &Group,
        here: u32,
        t: &Lanes<f32>,
        part: &Lanes<u32>,
    ) {
        each_lane(here, |lane| {
            let (o, d) = (rays.origin(lane), rays.direction(lane));
            let hit = describe_surface(scene, t[lane], number, part[lane], o, d);
            for a in 0..3 {
                self.p[a][lane] = hit.point.p[a];
                self.normal[a][lane] = hit.normal[a];
                self.shading[a][lane] = hit.shading[a];
            }
            for k in 0..2 {
                self.uv[k][lane] = hit.point.uv[k];
            }
            self.clearance[lane] = hit.clearance;
        });
    }
}

/// Corners of triangles in lanes, with normals and texture coordinates there, and -1 as `side` where normals are flipped.
struct Corners {
    corners: [Vectors; 3],
    normals: [Vectors; 3],
    uvs: [[Lanes<f32>; 2]; 3],
    side: Lanes<f32>,
}

/// Describes the hits of up to [`LANES`] rays, given by their indices, on triangles of meshes.
#[inline(always)]
pub(super) fn describe_triangles(scene: &SceneView, which: &[u32], hits: &mut Hits) {
    let mut at = Corners {
        corners: [[[0.0; LANES]; 3]; 3],
        normals: [[[0.0; LANES]; 3]; 3],
        uvs: [[[0.0; LANES]; 2]; 3],
        side: [1.0; LANES],
    };
    let mut weights = [[0.0; LANES]; 2];
    for (lane, &i) in which.iter().enumerate().take(LANES) {
        let i = i as usize;
        let (place, number) = (hits.primitive[i] as usize, hits.triangle[i]);
        let planes = &scene.bvh.blocks[place / BLOCK].corners;
        let corners = &scene.corners[number as usize];
        let [u0, v0, u1, v1] = corners.uv_ab;
        let uvs = [[u0, v0], [u1, v1], corners.uv_c];
        for k in 0..3 {
            for a in 0..3 {
                at.corners[k][a][lane] = planes[3 * k + a][place % BLOCK];
                at.normals[k][a][lane] = corners.normals[k][a];
            }
            for c in 0..2 {
                at.uvs[k][c][lane] = uvs[k][c];
            }
        }
        at.side[lane] = scene.surfaces[corners.shape as usize].side;
        hits.surface[i] = corners.shape;
        for k in 0..2 {
            weights[k][lane] = hits.weights[k][i];
        }
    }
    let found = at.describe(&weights);
    for (lane, &i) in which.iter().enumerate().take(LANES) {
        let i = i as usize;
        for a in 0..3 {
            hits.p[a][i] = found.p[a][lane];
            hits.normal[a][i] = found.normal[a][lane];
            hits.shading[a][i] = found.shading[a][lane];
        }
        for k in 0..2 {
            hits.uv[k][i] = found.uv[k][lane];
        }
        hits.clearance[i] = found.clearance[lane];
    }
}

impl Corners {
    /// Describes the hits with these barycentric weights of the second and the third corner.
    #[inline(always)]
    fn describe(&self, [u, v]: &[Lanes<f32>; 2]) -> Found {
        let mut found = Found::ZERO;
        for lane in 0..LANES {
            let [a, b, c] = [0, 1, 2].each(|k| [0, 1, 2].each(|axis| self.corners[k][axis][lane]));
            let (mut ab, mut ac) = ([0.0; 3], [0.0; 3]);
            for k in 0..3 {
                ab[k] = b[k] - a[k];
                ac[k] = c[k] - a[k];
            }
            let face = cross(ab, ac);
            let side = self.side[lane];
            let normal = normalize([face[0] * side, face[1] * side, face[2] * side]);
            for k in 0..3 {
                found.normal[k][lane] = normal[k];
            }
        }
        for lane in 0..LANES {
            let weights = [1.0 - u[lane] - v[lane], u[lane], v[lane]];
            let (mut p, mut size) = ([0.0; 3], 0.0f32);
            let mut uv = [0.0; 2];
            for i in 0..3 {
                for k in 0..3 {
                    let x = self.corners[i][k][lane];
                    p[k] += weights[i] * x;
                    size = select(x.abs() > size, x.abs(), size);
                }
                for k in 0..2 {
                    uv[k] += weights[i] * self.uvs[i][k][lane];
                }
            }
            for k in 0..3 {
                found.p[k][lane] = p[k];
            }
            for k in 0..2 {
                found.uv[k][lane] = uv[k];
            }
            found.clearance[lane] = ROUNDING * size;
        }
        for lane in 0..LANES {
            let weights = [1.0 - u[lane] - v[lane], u[lane], v[lane]];
            let mut shading = [0.0; 3];
            for k in 0..3 {
                for a in 0..3 {
                    shading[a] += self.side[lane] * weights[k] * self.normals[k][a][lane];
                }
            }
            let smooth = dot(shading, shading) > 0.0;
            let unit = normalize(shading);
            for a in 0..3 {
                found.shading[a][lane] = select(smooth, unit[a], found.normal[a][lane]);
            }
        }
        found
    }
}
