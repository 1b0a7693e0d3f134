//! Meshes whose vertices follow parameters: their own positions, or heights of a texture along their normals.

use std::ops::Range;

use glam::{Affine2, DVec2, DVec3, Vec2, Vec3};

use super::layout::CornerRecord;
use super::slot;
use crate::io;
use crate::io::mesh::{Mesh, Placed, smooth_normals};
use crate::params::{ParamSet, Quantity, Shape};
use crate::scene::{Displacement, Surface, Texture, Wrap};

/// How the vertices of a mesh follow a parameter.
#[derive(Debug, Clone)]
pub struct Vertices {
    /// The mesh's triangles among those of all meshes.
    pub triangles: Range<usize>,
    /// The parameter: three coordinates for each vertex, or the texels of heights.
    pub slot: u32,
    /// How heights displace the vertices; None if the parameter holds positions.
    pub relief: Option<Relief>,
    /// The triangles around each vertex, from which its normal follows; None if faces have their own normals.
    pub around: Option<Around>,
}

/// Vertices that are displaced by the heights of a texture.
#[derive(Debug, Clone)]
pub struct Relief {
    /// For each vertex its position at height zero, and its displacement for a height of one: the scale times the unit
    /// normal.
    rest: Vec<Vec3>,
    along: Vec<Vec3>,
    /// For each vertex the place on the texture of its height.
    uvs: Vec<Vec2>,
    wrap: Wrap,
    is_nearest: bool,
    /// For each vertex the texels of its height, in the current resolution.
    stencils: Vec<Stencil>,
}

/// The mesh of a surface in the world, displaced by `heights` of this shape; without normals, which follow from its faces.
///
/// # Errors
/// The file of the mesh cannot be read.
pub fn displaced(surface: &Surface, shape: Shape, heights: &[f32]) -> io::Result<Mesh> {
    let mesh = surface.geometry.mesh()?;
    let placed = mesh.placed(&surface.to_world);
    let positions = match &surface.displacement {
        None => placed.positions,
        Some(displacement) => {
            let mut relief = Relief::new(displacement, &mesh, &placed);
            relief.fit(shape);
            relief.positions(heights)
        }
    };
    Ok(Mesh {
        positions: positions.iter().map(Vec3::to_array).collect(),
        normals: Vec::new(),
        triangles: placed.triangles,
        ..mesh
    })
}

/// Texels around a vertex, with bilinear weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stencil {
    pub texels: [u32; 4],
    pub weights: [f32; 4],
}

/// The triangles around each vertex.
#[derive(Debug, Clone)]
pub struct Around {
    /// For each vertex the index of its first entry in `others`, then the number of all entries.
    first: Vec<u32>,
    others: Vec<[u32; 2]>,
}

impl Around {
    fn new(count: usize, triangles: &[[u32; 3]]) -> Self {
        let mut first = vec![0u32; count + 1];
        for v in triangles.as_flattened() {
            first[*v as usize + 1] += 1;
        }
        for v in 0..count {
            first[v + 1] += first[v];
        }
        let mut next = first.clone();
        let mut others = vec![[0; 2]; 3 * triangles.len()];
        for triangle in triangles {
            for k in 0..3 {
                let place = &mut next[triangle[k] as usize];
                others[*place as usize] = [triangle[(k + 1) % 3], triangle[(k + 2) % 3]];
                *place += 1;
            }
        }
        Self { first, others }
    }

    /// The number of vertices.
    pub fn vertices(&self) -> usize {
        self.first.len() - 1
    }

    /// For each triangle at a vertex the triangle's two other vertices, in winding order.
    #[inline]
    pub fn of(&self, vertex: u32) -> &[[u32; 2]] {
        let vertex = vertex as usize;
        &self.others[self.first[vertex] as usize..self.first[vertex + 1] as usize]
    }
}

impl Relief {
    fn new(displacement: &Displacement, mesh: &Mesh, placed: &Placed) -> Self {
        let (to_uv, wrap, is_nearest) = match &displacement.height {
            Texture::Bitmap(map) => (map.to_uv, map.wrap, map.nearest),
            _ => (Affine2::IDENTITY, Wrap::Clamp, true),
        };
        let uv = |uv: &[f32; 2]| to_uv.transform_point2(Vec2::from_array(*uv));
        Self {
            rest: placed.positions.clone(),
            along: placed.normals.iter().map(|n| displacement.scale * *n).collect(),
            uvs: match mesh.uvs.is_empty() {
                true => vec![Vec2::ZERO; placed.positions.len()],
                false => mesh.uvs.iter().map(uv).collect(),
            },
            wrap,
            is_nearest,
            stencils: Vec::new(),
        }
    }

    /// Follows the texture's resolution.
    fn fit(&mut self, shape: Shape) {
        let [width, height, _] = shape.size;
        let side = |x: f64, size: usize| {
            let x = x * size as f64;
            if self.is_nearest {
                return ([wrapped(self.wrap, x.floor(), size); 2], 0.0);
            }
            let first = (x - 0.5).floor();
            let texels = [0.0, 1.0].map(|step| wrapped(self.wrap, first + step, size));
            (texels, (x - 0.5 - first) as f32)
        };
        let stencil = |uv: &Vec2| {
            let uv: DVec2 = uv.as_dvec2();
            let ([left, right], x) = side(uv.x, width);
            let ([top, bottom], y) = side(uv.y, height);
            let [top, bottom] = [top, bottom].map(|row| row * width as u32);
            Stencil {
                texels: [top + left, top + right, bottom + left, bottom + right],
                weights: [(1.0 - x) * (1.0 - y), x * (1.0 - y), (1.0 - x) * y, x * y],
            }
        };
        self.stencils = self.uvs.iter().map(stencil).collect();
    }

    /// Where the vertices are for these heights.
    fn positions(&self, heights: &[f32]) -> Vec<Vec3> {
        let moved = |((rest, along), stencil): ((&Vec3, &Vec3), &Stencil)| {
            let texels = stencil.texels.map(|texel| f64::from(heights[texel as usize]));
            let height: f64 = (0..4).map(|k| texels[k] * f64::from(stencil.weights[k])).sum();
            let p: DVec3 = rest.as_dvec3() + height * along.as_dvec3();
            p.as_vec3()
        };
        let places = self.rest.iter().zip(&self.along).zip(&self.stencils);
        places.map(moved).collect()
    }

    /// The number of vertices.
    pub fn count(&self) -> u32 {
        self.rest.len() as u32
    }

    /// A vertex's position at height zero, its displacement for a height of one, and the texels of its height.
    #[inline]
    pub fn of(&self, vertex: u32) -> ([f32; 3], [f32; 3], &Stencil) {
        let vertex = vertex as usize;
        (
            self.rest[vertex].to_array(),
            self.along[vertex].to_array(),
            &self.stencils[vertex],
        )
    }
}

/// The texel at place `x` under a wrap mode.
fn wrapped(mode: Wrap, x: f64, size: usize) -> u32 {
    let (x, size) = (x as i64, size as i64);
    let texel = match mode {
        Wrap::Clamp => x.clamp(0, size - 1),
        Wrap::Repeat => x.rem_euclid(size),
        Wrap::Mirror => {
            let x = x.rem_euclid(2 * size);
            x.min(2 * size - 1 - x)
        }
    };
    texel as u32
}

impl Vertices {
    /// How the vertices of a surface's mesh, whose triangles begin at `first`, follow a parameter; None if they stay.
    pub(super) fn new(
        surface: &Surface,
        mesh: &Mesh,
        placed: &Placed,
        first: usize,
        face_normals: bool,
        params: &ParamSet,
    ) -> Option<Self> {
        let positions = surface.motion.iter().find(|part| part.quantity == Quantity::Vertex);
        let (array, relief) = match (positions, &surface.displacement) {
            (Some(part), _) => (&part.array, None),
            (None, Some(displacement)) => {
                let relief = Relief::new(displacement, mesh, placed);
                (displacement.array(), Some(relief))
            }
            (None, None) => return None,
        };
        let slot = slot(params, array);
        let mut vertices = Self {
            triangles: first..first + placed.triangles.len(),
            slot: slot as u32,
            relief,
            around: (!face_normals).then(|| Around::new(placed.positions.len(), &placed.triangles)),
        };
        vertices.fit(params.parameters[slot].shape);
        Some(vertices)
    }

    /// Follows the resolution of the texture.
    pub(super) fn fit(&mut self, shape: Shape) {
        if let Some(relief) = &mut self.relief {
            relief.fit(shape);
        }
    }

    /// Where the vertices are for these values of the parameter.
    pub(super) fn positions(&self, values: &[f32]) -> Vec<Vec3> {
        match &self.relief {
            None => values.chunks_exact(3).map(Vec3::from_slice).collect(),
            Some(relief) => relief.positions(values),
        }
    }

    /// The normals of vertices at these positions; zero where faces have their own.
    pub(super) fn normals(&self, positions: &[Vec3], triangles: &[[u32; 3]]) -> Vec<Vec3> {
        match self.around {
            Some(_) => smooth_normals(positions, triangles),
            None => vec![Vec3::ZERO; positions.len()],
        }
    }

    /// Moves corners and normals of `triangles`, which are all those of the mesh, to the values of the parameter.
    pub(super) fn place(&self, values: &[f32], triangles: &mut [[[f32; 3]; 3]], corners: &mut [CornerRecord]) {
        let positions = self.positions(values);
        let indices: Vec<[u32; 3]> = corners.iter().map(CornerRecord::vertices).collect();
        let normals = self.normals(&positions, &indices);
        for ((triangle, corner), vertices) in triangles.iter_mut().zip(corners).zip(indices) {
            for (k, v) in vertices.into_iter().enumerate() {
                triangle[k] = positions[v as usize].to_array();
                corner.normals[k][..3].copy_from_slice(&normals[v as usize].to_array());
            }
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let around = self.around.as_ref().map_or(0, |around| {
            size_of_val(&around.first[..]) + size_of_val(&around.others[..])
        });
        let relief = self.relief.as_ref().map_or(0, |relief| {
            relief.rest.len() * (2 * size_of::<Vec3>() + size_of::<Vec2>() + size_of::<Stencil>())
        });
        around + relief
    }
}
