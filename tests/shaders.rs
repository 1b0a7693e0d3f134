//! Every shader variant: sound WGSL, and the same records, bindings and constants as in Rust.

use std::collections::BTreeMap;
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::sync::LazyLock;

use prbopt::device::gpu::records::{
    self, Cube, DisplacedRecord, ELEMENT_GROUP, Elements, Lamp, Launch, LightFilm, LightSettings, MotionRecord,
    RAY_GROUP, Screen, Slab, Slot, SplatSettings, TracerRecord,
};
use prbopt::device::gpu::shaders::{Access, Accumulation, Dialect, Kernel, Leaves, Library, MODULES, variants};
use prbopt::kernels::loss::RELATIVE_FLOOR;
use prbopt::kernels::regularizer::TV_EPSILON;
use prbopt::resident::bvh::MAX_LEVELS;
use prbopt::resident::layout::{
    self, BlockRecord, BsdfRecord, CHAIN_BYTES, CHAIN_VERTICES, CornerRecord, DistanceGridRecord,
    EmissiveTriangleRecord, FactorRecord, FilterTable, LeafRecord, LightRecord, MediumRecord, NodeRecord, PathSettings,
    PhaseRecord, SceneRecord, SensorRecord, SurfaceRecord, TextureRecord, VolumeRecord,
};
use prbopt::resident::light::MAX_TAPS;
use prbopt::transport::mode;
use prbopt::transport::rays::{camera, pixel, sampler};
use prbopt::transport::scene::bsdf::transmittance::ENTRIES;
use prbopt::transport::scene::coats::COAT_FLOATS;
use prbopt::transport::scene::{bvh, motion, phase};
use rayon::prelude::*;
use wgpu::naga;

/// Parses and validates a variant; a mistake is reported at its module and line.
fn module(kernel: Kernel, accumulation: Accumulation) -> (naga::Module, naga::valid::ModuleInfo) {
    variant(kernel, Dialect::plain(accumulation), Leaves::ALL)
}

/// The same in any dialect, for scenes with BSDFs of these kinds.
fn variant(kernel: Kernel, dialect: Dialect, leaves: Leaves) -> (naga::Module, naga::valid::ModuleInfo) {
    let composed = Library::embedded()
        .compose(kernel, dialect, leaves)
        .unwrap_or_else(|e| panic!("{e}"));
    let place = |location: Option<naga::SourceLocation>| composed.place(location.map_or(0, |l| l.line_number as usize));
    let module = naga::front::wgsl::parse_str(&composed.text).unwrap_or_else(|e| {
        panic!(
            "{}: {}",
            place(e.location(&composed.text)),
            e.emit_to_string(&composed.text)
        )
    });
    let capabilities = naga::valid::Capabilities::SHADER_FLOAT32_ATOMIC
        | naga::valid::Capabilities::SHADER_INT64
        | naga::valid::Capabilities::SHADER_INT64_ATOMIC_ALL_OPS
        | naga::valid::Capabilities::SUBGROUP
        | naga::valid::Capabilities::RAY_QUERY;
    let info = naga::valid::Validator::new(naga::valid::ValidationFlags::all(), capabilities)
        .validate(&module)
        .unwrap_or_else(|e| {
            panic!(
                "{}: {}",
                place(e.location(&composed.text)),
                e.emit_to_string(&composed.text)
            )
        });
    (module, info)
}

/// A variant of a kernel, for scenes with everything: what tests look at.
struct Variant {
    kernel: Kernel,
    dialect: Dialect,
    entries: Vec<String>,
    arrays: Vec<(Option<String>, naga::TypeInner)>,
    bound: Vec<(u32, Access)>,
}

/// All variants. They take seconds to parse, and more than a gigabyte as a whole.
static VARIANTS: LazyLock<Vec<Variant>> = LazyLock::new(|| {
    let looked_at = |(kernel, dialect)| {
        let (module, info) = variant(kernel, dialect, Leaves::ALL);
        let is_array = |of: &naga::Type| matches!(of.inner, naga::TypeInner::Array { .. });
        let arrays = module.types.iter().map(|(_, of)| of).filter(|of| is_array(of));
        Variant {
            kernel,
            dialect,
            entries: module.entry_points.iter().map(|entry| entry.name.clone()).collect(),
            arrays: arrays.map(|of| (of.name.clone(), of.inner.clone())).collect(),
            bound: bound(&module, &info),
        }
    };
    variants().into_par_iter().map(looked_at).collect()
});

/// The bindings that an entry point uses, by number.
fn bound(module: &naga::Module, info: &naga::valid::ModuleInfo) -> Vec<(u32, Access)> {
    let used = info.get_entry_point(0);
    let mut found = Vec::new();
    for (handle, variable) in module.global_variables.iter() {
        let Some(binding) = &variable.binding else { continue };
        if used[handle].is_empty() {
            continue;
        }
        assert_eq!(binding.group, 0);
        let access = match variable.space {
            naga::AddressSpace::Uniform => Access::Uniform,
            naga::AddressSpace::Storage { access } if access.contains(naga::StorageAccess::STORE) => Access::Write,
            naga::AddressSpace::Handle => Access::Search,
            _ => Access::Read,
        };
        found.push((binding.binding, access));
    }
    found.sort_by_key(|(number, _)| *number);
    found
}

#[test]
fn every_variant_is_sound() {
    for Variant { kernel, entries, .. } in VARIANTS.iter() {
        assert_eq!(*entries, ["main"], "{kernel:?}");
    }
}

/// Each type of array has one name: passing a value of one alias where another is declared is valid WGSL, for which naga writes
/// invalid SPIR-V.
#[test]
fn arrays_of_a_kind_have_one_name() {
    for Variant { kernel, arrays, .. } in VARIANTS.iter() {
        for (i, (name, inner)) in arrays.iter().enumerate() {
            for (other_name, other) in &arrays[..i] {
                assert!(inner != other, "{kernel:?}: {name:?} and {other_name:?}");
            }
        }
    }
}

/// What an invocation notes while it adds up is recorded at its end.
#[test]
fn faults_are_reported() {
    let mut noting = 0;
    for kernel in Kernel::ALL {
        let dialect = Dialect {
            views: true,
            ..Dialect::plain(Accumulation::FixedPoint)
        };
        let composed = Library::embedded().compose(kernel, dialect, Leaves::ALL);
        let text = composed.unwrap_or_else(|e| panic!("{e}")).text;
        if text.contains("faults |=") {
            noting += 1;
            assert!(text.contains("    report_faults();"), "{kernel:?}");
        }
    }
    assert_eq!(
        noting, 5,
        "the replays of paths, alone and in waves, of fields, of light and of splats"
    );
}

/// Each kind of BSDF alone, and none.
#[test]
fn every_kind_of_leaf_is_sound_alone() {
    for leaves in Leaves::each().chain([Leaves::default()]) {
        for kernel in Kernel::ALL.into_iter().filter(|kernel| kernel.follows_paths()) {
            variant(kernel, Dialect::plain(Accumulation::FloatAtomic), leaves);
        }
    }
}

/// Code for derivatives by cameras is compiled for runs that refine cameras, and for no others.
#[test]
fn cameras_that_are_known_cost_no_text() {
    let text = |views| {
        let dialect = Dialect {
            views,
            ..Dialect::plain(Accumulation::FloatAtomic)
        };
        let composed = Library::embedded().compose(Kernel::Backpropagate, dialect, Leaves::ALL);
        composed.expect("sound directives").text
    };
    for word in ["ray_add", "view_adjoint", "env_slope", "cell_gradient", "sh_adjoint"] {
        assert!(text(true).contains(word) && !text(false).contains(word), "{word}");
    }
}

#[test]
fn every_module_is_embedded_and_used() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders");
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the shaders' folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let stem = path
                    .strip_prefix(&root)
                    .expect("a file under the root")
                    .with_extension("");
                found.push(stem.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    found.sort();
    let mut embedded: Vec<String> = MODULES.iter().map(|(p, _)| (*p).to_owned()).collect();
    embedded.sort();
    assert_eq!(found, embedded);

    let library = Library::embedded();
    let compose = |(k, d)| library.compose(k, d, Leaves::ALL).expect("sound directives").text;
    let all: String = variants().into_iter().map(compose).collect();
    for (path, text) in MODULES {
        let first = text.lines().next().expect("a module has a first line");
        assert!(all.contains(first), "{path} is imported by no kernel");
    }
}

/// A struct of WGSL: its size, and its members' offsets.
fn structure(module: &naga::Module, name: &str) -> (u32, BTreeMap<String, u32>) {
    let (_, found) = module
        .types
        .iter()
        .find(|(_, t)| t.name.as_deref() == Some(name))
        .unwrap_or_else(|| panic!("no struct {name}"));
    let naga::TypeInner::Struct { members, span } = &found.inner else {
        panic!("{name} is not a struct");
    };
    let members = members.iter().map(|m| (m.name.clone().expect("a name"), m.offset));
    (*span, members.collect())
}

/// Compares a record with its twin; `field = "name"` where WGSL reserves the field's name.
macro_rules! compare_record {
    ($module:expr, $record:ident, $twin:literal, [$($field:ident $(= $name:literal)?),* $(,)?]) => {{
        let (size, members) = structure($module, $twin);
        assert_eq!(size as usize, size_of::<$record>(), concat!("size of ", $twin));
        let fields = [$((stringify!($field), [$($name)?].first().copied(), offset_of!($record, $field))),*];
        for (field, renamed, offset) in fields {
            let name: &str = renamed.unwrap_or(field);
            let found = *members.get(name).unwrap_or_else(|| panic!("{} has no member {name}", $twin));
            assert_eq!(found as usize, offset, "{}.{name}", $twin);
        }
        let named = members.keys().filter(|k| !k.starts_with("padding")).count();
        assert_eq!(named, fields.len(), "members of {}", $twin);
    }};
}

/// The size of a chain that `info` prints is that of the vertices that an invocation keeps.
#[test]
fn chains_are_as_large_as_told() {
    let (walk, _) = module(Kernel::BackpropagatePaths, Accumulation::FloatAtomic);
    let (link, _) = structure(&walk, "Link");
    assert_eq!((CHAIN_VERTICES + 1) * link, CHAIN_BYTES);
}

#[test]
#[rustfmt::skip]
fn records_agree() {
    let (walk, _) = module(Kernel::Backpropagate, Accumulation::FloatAtomic);
    compare_record!(&walk, SceneRecord, "Scene", [
        world_to_unit, world_to_field, world_to_env, sigma_size, sh_size, occupancy_size, env_size, env_scale,
        step_length, stop, has_field, sh_degree, density_activation, color_activation, background, env_scale_slot,
        filters,
    ]);
    compare_record!(&walk, SensorRecord, "Sensor", [
        to_world, distortion, backdrop_color, focal, center, width, height, near_clip, far_clip,
        filter = "filter_kind", filter_size, distortion_model, backdrop, first_pixel, medium, kind,
        sample_border, filter_table, area, aperture_radius, focus_distance, area_to_world,
    ]);
    compare_record!(&walk, FilterTable, "FilterTable", [drawn, signed]);
    compare_record!(&walk, NodeRecord, "Node", [planes, children]);
    compare_record!(&walk, BlockRecord, "Block", [corners, triangles]);
    compare_record!(&walk, Slot, "Slot", [first, tuned, spread, magnitude]);
    compare_record!(&walk, Launch, "Launch", [
        objective, key, sigma, sh, emitter, first_pixel, last_pixel, first_sample, last_sample, spp, drawn, groups_x, sensor_count,
        starts_at, sensors_at, occupancy_at, reach_at, reference_kind, loss_kind,
        loss_delta, loss_seed, adjoint_scale, surfaces_at, media_at, volumes_at, phases_at, lights_at, bsdfs_at,
        leaves_at, factors_at, textures_at, parameters_at, nodes_at, blocks_at, corners_at, emissive_triangles_at,
        distance_grids_at, distances_at, rooms_at, environment_at, coats_at, digits, exponent, aov, exposure,
        loss_scale, view_length, motions_at, displaced_at, light_motions_at, sensor_motions_at, around_at, singles_at,
        wave_places,
        wave_first,
        wave_edges_at,
        wave_edges_word,
    ]);
    let (world, _) = module(Kernel::BackpropagatePaths, Accumulation::FloatAtomic);
    compare_record!(&world, VolumeRecord, "Volume", [world_to_unit, size, slot, filter = "filter_kind", wrap]);
    compare_record!(&world, MediumRecord, "Medium", [
        world_to_grid, low, clear, high, alone, majorants, sigma_t, albedo, emission, phase, scale, spectral, flags, kappa,
    ]);
    compare_record!(&world, PhaseRecord, "Phase", [kind, slot, weight, first]);
    compare_record!(&world, SurfaceRecord, "Surface", [
        to_local, to_world, kind, bsdf, interior, exterior, light, side, distances,
    ]);
    compare_record!(&world, MotionRecord, "Motion", [
        translate, rotate, scale, scale_channels, origin, vertices, radians, normals, factors, relief, sines, around,
        track, middle, extent,
    ]);
    compare_record!(&world, DisplacedRecord, "Displaced", [along, rest, texels, weights]);
    compare_record!(&world, DistanceGridRecord, "DistanceGrid", [
        size, first, smooth = "smooth_normals", first_room,
    ]);
    compare_record!(&world, BsdfRecord, "Bsdf", [front, back, flags]);
    compare_record!(&world, LeafRecord, "Leaf", [
        kind, flags, first_factor, factors, first_texture, coat, textures, relief, rates, bump_scale,
    ]);
    compare_record!(&world, FactorRecord, "Factor", [texture = "factor_texture", complement]);
    compare_record!(&world, CornerRecord, "Corner", [normals, uv_ab, uv_c, shape, face]);
    compare_record!(&world, LightRecord, "Light", [
        position, direction, to_local, kind, slot, surface, cos_beam, first_emissive, emissive_triangles,
        texture = "light_texture", table, extent, cells, probability, cumulative,
    ]);
    compare_record!(&world, EmissiveTriangleRecord, "EmissiveTriangle", [a, begins, b, ends, c, triangle, uv_ab, uv_c]);
    compare_record!(&world, TextureRecord, "Texture", [
        to_uv, kind, slot, other_slot, channels, size, filter = "filter_kind", wrap,
    ]);
    compare_record!(&world, PathSettings, "PathSettings", [
        surfaces, lights, environment, max_depth, rr_depth, hide_emitters, gradient = "gradient_kind", spectral, low,
        surfaces_only, weighted, high,
    ]);
    let (splats, _) = module(Kernel::DerivativesSplats, Accumulation::FloatAtomic);
    compare_record!(&splats, SplatSettings, "SplatSettings", [
        position, scale, rotation, color, opacity, background, count, group, groups, groups_x, tiles_x, tiles_y, width,
        height, first_pixel, side, offset, first_row,
    ]);
    let (light, _) = module(Kernel::BackpropagateLight, Accumulation::FloatAtomic);
    compare_record!(&light, LightSettings, "LightSettings", [parameter, size, slab, cube, screen, film, lamp]);
    compare_record!(&light, Slab, "Slab", [origin, across, down, thickness, eta, outside, entering, inside]);
    compare_record!(&light, Cube, "Cube", [corner, step, across, most_steps, down, refracts, direction]);
    compare_record!(&light, Screen, "Screen", [to_screen, front]);
    compare_record!(&light, LightFilm, "LightFilm", [
        row_x, pixels, row_y, near_clip, depth, far_clip, exposure, units, size, first_pixel, sensor, radius, nodes,
        node_count, filter_at,
    ]);
    compare_record!(&light, Lamp, "Lamp", [to_uv, size, first, nearest, wrap]);
    let (particles, _) = module(Kernel::RenderParticles, Accumulation::FloatAtomic);
    compare_record!(&particles, TracerRecord, "Tracer", [
        to_local, step, share, max_depth, rr_depth, center, radius, size, first_pixel, sensor, scale, filter_radius, nodes,
        node_count, table,
    ]);
    let (step, _) = module(Kernel::Step, Accumulation::FloatAtomic);
    compare_record!(&step, Elements, "Elements", [
        size, source_size, first, count, source_first, groups_x, threads, kind, mask_updates, rate,
        second_correction, low, high, decay_1, decay_2, epsilon, weight, report_at,
        scale, margin, least, wraps,
    ]);
}

#[test]
fn bindings_agree() {
    for Variant {
        kernel, dialect, bound, ..
    } in VARIANTS.iter()
    {
        let registered: Vec<_> = kernel.bindings(*dialect).iter().map(|&(b, a)| (b as u32, a)).collect();
        assert_eq!(*bound, registered, "{kernel:?} {dialect:?}");
        let buffers = registered
            .iter()
            .filter(|(_, a)| !matches!(a, Access::Uniform | Access::Search))
            .count();
        assert!(
            buffers <= 8 || dialect.banks > 1,
            "{kernel:?} needs {buffers} storage buffers; WebGPU promises 8"
        );
    }
}

/// A constant's value.
fn constant(module: &naga::Module, name: &str) -> f64 {
    let (_, found) = module
        .constants
        .iter()
        .find(|(_, c)| c.name.as_deref() == Some(name))
        .unwrap_or_else(|| panic!("no constant {name}"));
    match module.global_expressions[found.init] {
        naga::Expression::Literal(naga::Literal::U32(value)) => f64::from(value),
        naga::Expression::Literal(naga::Literal::I32(value)) => f64::from(value),
        naga::Expression::Literal(naga::Literal::F32(value)) => f64::from(value),
        ref other => panic!("{name} is {other:?}"),
    }
}

#[test]
fn constants_agree() {
    let (walk, _) = module(Kernel::Backpropagate, Accumulation::FloatAtomic);
    for (name, value) in [
        ("UNIFORM_VECTORS", records::UNIFORM_VECTORS),
        ("DENSITY_RELU", layout::density::RELU),
        ("DENSITY_SOFTPLUS", layout::density::SOFTPLUS),
        ("DENSITY_EXP", layout::density::EXP),
        ("COLOR_CLIP", layout::color::CLIP),
        ("COLOR_SIGMOID", layout::color::SIGMOID),
        ("COLOR_RELU_HALF", layout::color::RELU_HALF),
        ("BACKGROUND_NONE", layout::background::NONE),
        ("BACKGROUND_CONSTANT", layout::background::CONSTANT),
        ("BACKGROUND_ENVMAP", layout::background::ENVMAP),
        ("FILTER_BOX", layout::filter::BOX),
        ("FILTER_TENT", layout::filter::TENT),
        ("FILTER_TABLE", layout::filter::TABLE),
        ("FILTER_CELLS", layout::FILTER_CELLS as u32),
        ("FILTER_VECTORS", layout::FILTER_ENTRIES as u32 / 4),
        ("FILTERS", layout::FILTERS as u32),
        ("SENSOR_PERSPECTIVE", layout::sensor::PERSPECTIVE),
        ("SENSOR_THINLENS", layout::sensor::THINLENS),
        ("SENSOR_ORTHOGRAPHIC", layout::sensor::ORTHOGRAPHIC),
        ("SENSOR_IRRADIANCEMETER", layout::sensor::IRRADIANCEMETER),
        ("SENSOR_DISTANT", layout::sensor::DISTANT),
        ("AOV_ALBEDO", layout::aov::ALBEDO),
        ("AOV_DEPTH", layout::aov::DEPTH),
        ("AOV_POSITION", layout::aov::POSITION),
        ("AOV_UV", layout::aov::UV),
        ("AOV_GEO_NORMAL", layout::aov::GEO_NORMAL),
        ("AOV_SH_NORMAL", layout::aov::SH_NORMAL),
        ("AOV_SHAPE_INDEX", layout::aov::SHAPE_INDEX),
        ("AOV_DP_DU", layout::aov::DP_DU),
        ("AOV_DP_DV", layout::aov::DP_DV),
        ("AOV_PRIM_INDEX", layout::aov::PRIM_INDEX),
        ("AOV_DUV_DX", layout::aov::DUV_DX),
        ("AOV_DUV_DY", layout::aov::DUV_DY),
        ("AREA_POINT", layout::area::POINT),
        ("AREA_DISK", layout::area::DISK),
        ("AREA_RECTANGLE", layout::area::RECTANGLE),
        ("AREA_SPHERE", layout::area::SPHERE),
        ("AREA_CAVITY", layout::area::CAVITY),
        ("AREA_CYLINDER", layout::area::CYLINDER),
        ("AREA_PIPE", layout::area::PIPE),
        ("AREA_CUBE", layout::area::CUBE),
        ("AREA_ROOM", layout::area::ROOM),
        ("DISTORTION_NONE", layout::distortion::NONE),
        ("DISTORTION_BROWN", layout::distortion::BROWN),
        ("DISTORTION_FISHEYE", layout::distortion::FISHEYE),
        ("BACKDROP_OPAQUE", layout::backdrop::OPAQUE),
        ("BACKDROP_COLOR", layout::backdrop::COLOR),
        ("BACKDROP_RANDOM", layout::backdrop::RANDOM),
        ("OCCUPANCY_RENDERS", layout::occupancy::RENDERS),
        ("OCCUPANCY_LEARNS", layout::occupancy::LEARNS),
        ("NO_REFERENCE", layout::NO_REFERENCE),
        ("RAY_GROUP", RAY_GROUP),
        ("ELEMENT_GROUP", ELEMENT_GROUP),
        ("LOSS_L1", records::loss::L1),
        ("LOSS_L2", records::loss::L2),
        ("LOSS_HUBER", records::loss::HUBER),
        ("LOSS_RELATIVE_L2", records::loss::RELATIVE_L2),
        ("LOSS_LOG_L1", records::loss::LOG_L1),
        ("LOSS_LINEAR", records::loss::LINEAR),
        ("LOSS_SCALED_L2", records::loss::SCALED_L2),
        ("LOSS_MEANS", records::loss::MEANS),
        ("REFERENCE_NONE", records::reference::NONE),
        ("REFERENCE_CONSTANT", records::reference::CONSTANT),
        ("REFERENCE_UNORM8", records::reference::UNORM8),
        ("REFERENCE_FLOAT", records::reference::FLOAT),
        ("OPTIMIZER_ADAM", records::optimizer::ADAM),
        ("OPTIMIZER_SGD", records::optimizer::SGD),
        ("OPTIMIZER_RMSPROP", records::optimizer::RMSPROP),
        ("PENALTY_TOTAL_VARIATION", records::penalty::TOTAL_VARIATION),
        ("PENALTY_SPARSITY", records::penalty::SPARSITY),
        ("DRAWN_PIXEL", pixel::DRAWN_PIXEL),
        ("RANDOM_BACKDROP", pixel::RANDOM_BACKDROP),
        ("LINEAR_WEIGHT", pixel::LINEAR_WEIGHT),
        ("NEWTON_STEPS", camera::NEWTON_STEPS),
    ] {
        assert_eq!(constant(&walk, name), f64::from(value), "{name}");
    }
    let (world, _) = module(Kernel::BackpropagatePaths, Accumulation::FloatAtomic);
    for (name, value) in [
        ("NONE", layout::NONE),
        ("LOOKUP_CONSTANT", layout::lookup::CONSTANT),
        ("LOOKUP_TRILINEAR", layout::lookup::TRILINEAR),
        ("LOOKUP_NEAREST", layout::lookup::NEAREST),
        ("WRAP_CLAMP", layout::wrap::CLAMP),
        ("WRAP_REPEAT", layout::wrap::REPEAT),
        ("WRAP_MIRROR", layout::wrap::MIRROR),
        ("PHASE_ISOTROPIC", layout::phase::ISOTROPIC),
        ("PHASE_HG", layout::phase::HG),
        ("PHASE_RAYLEIGH", layout::phase::RAYLEIGH),
        ("PHASE_BLEND", layout::phase::BLEND),
        ("SURFACE_CUBE", layout::surface::CUBE),
        ("SURFACE_SPHERE", layout::surface::SPHERE),
        ("SURFACE_RECTANGLE", layout::surface::RECTANGLE),
        ("SURFACE_MESH", layout::surface::MESH),
        ("SURFACE_DISK", layout::surface::DISK),
        ("SURFACE_CYLINDER", layout::surface::CYLINDER),
        ("CHILD_KIND", layout::child::KIND),
        ("CHILD_NODE", layout::child::NODE),
        ("CHILD_BLOCK", layout::child::BLOCK),
        ("CHILD_SURFACE", layout::child::SURFACE),
        ("LEAF_NULL", layout::leaf::NULL),
        ("LEAF_DIFFUSE", layout::leaf::DIFFUSE),
        ("LEAF_CONDUCTOR", layout::leaf::CONDUCTOR),
        ("LEAF_ROUGH_CONDUCTOR", layout::leaf::ROUGH_CONDUCTOR),
        ("LEAF_DIELECTRIC", layout::leaf::DIELECTRIC),
        ("LEAF_THIN_DIELECTRIC", layout::leaf::THIN_DIELECTRIC),
        ("LEAF_ROUGH_DIELECTRIC", layout::leaf::ROUGH_DIELECTRIC),
        ("LEAF_PLASTIC", layout::leaf::PLASTIC),
        ("LEAF_ROUGH_PLASTIC", layout::leaf::ROUGH_PLASTIC),
        ("LEAF_PRINCIPLED", layout::leaf::PRINCIPLED),
        ("LEAF_PRINCIPLED_THIN", layout::leaf::PRINCIPLED_THIN),
        ("LEAF_TURNED", layout::leaf::TURNED),
        ("LEAF_BECKMANN", layout::leaf::BECKMANN),
        ("LEAF_ALL_NORMALS", layout::leaf::ALL_NORMALS),
        ("LEAF_NONLINEAR", layout::leaf::NONLINEAR),
        ("LEAF_SPECULAR", layout::leaf::SPECULAR),
        ("LEAF_VARIES", layout::leaf::VARIES),
        ("LEAF_RELIEF_TURNED", layout::leaf::RELIEF_TURNED),
        ("LEAF_BUMP", layout::leaf::BUMP),
        ("LEAF_FLIPS", layout::leaf::FLIPS),
        ("LEAF_SHADOWS", layout::leaf::SHADOWS),
        ("LEAF_FRONT", layout::leaf::FRONT),
        ("LEAF_BACK", layout::leaf::BACK),
        ("LEAF_TEXTURES", layout::LEAF_TEXTURES as u32),
        ("COAT_ENTRIES", ENTRIES as u32),
        ("COAT_FLOATS", COAT_FLOATS as u32),
        ("MEDIUM_ALIGNED", layout::medium::ALIGNED),
        ("MEDIUM_SEALED", layout::medium::SEALED),
        ("BSDF_SMOOTH", layout::bsdf::SMOOTH),
        ("BSDF_NULL", layout::bsdf::NULL),
        ("BSDF_VARIES", layout::bsdf::VARIES),
        ("BSDF_ANISOTROPIC", layout::bsdf::ANISOTROPIC),
        ("LIGHT_POINT", layout::light::POINT),
        ("LIGHT_SPOT", layout::light::SPOT),
        ("LIGHT_DIRECTIONAL", layout::light::DIRECTIONAL),
        ("LIGHT_AREA", layout::light::AREA),
        ("LIGHT_ENVMAP", layout::light::ENVMAP),
        ("LIGHT_PROJECTOR", layout::light::PROJECTOR),
        ("LIGHT_COLLIMATED", layout::light::COLLIMATED),
        ("TEXTURE_CONSTANT", layout::texture::CONSTANT),
        ("TEXTURE_CHECKERBOARD", layout::texture::CHECKERBOARD),
        ("TEXTURE_BITMAP", layout::texture::BITMAP),
        ("TEXTURE_SQUARES", layout::texture::SQUARES),
        ("SURFACES_ONLY_NO", layout::surfaces_only::NO),
        ("SURFACES_ONLY_OPAQUE", layout::surfaces_only::OPAQUE),
        ("SURFACES_ONLY_CLEAR", layout::surfaces_only::CLEAR),
        ("GRADIENT_FREE_FLIGHT", layout::gradient::FREE_FLIGHT),
        ("GRADIENT_DRT", layout::gradient::DRT),
        ("GRADIENT_PAIRED", layout::gradient::PAIRED),
        ("PRIMAL", u32::from(mode::PRIMAL)),
        ("GATHER", u32::from(mode::GATHER)),
        ("REPLAY", u32::from(mode::REPLAY)),
        ("WALK", sampler::WALK),
        ("ADJOINT", sampler::ADJOINT),
        ("MAX_NESTING", phase::MAX_NESTING as u32),
        ("MAX_LEVELS", MAX_LEVELS as u32),
        ("CHAIN_VERTICES", layout::CHAIN_VERTICES),
    ] {
        assert_eq!(constant(&world, name), f64::from(value), "{name}");
    }
    let (light, _) = module(Kernel::BackpropagateLight, Accumulation::FloatAtomic);
    assert_eq!(constant(&light, "MAX_TAPS"), MAX_TAPS as f64, "MAX_TAPS");
    let (particles, _) = module(Kernel::RenderParticles, Accumulation::FloatAtomic);
    let vectors = records::SPLAT_VECTORS as f64;
    assert_eq!(constant(&particles, "SPLAT_VECTORS"), vectors, "SPLAT_VECTORS");
    let (loss, _) = module(Kernel::Loss, Accumulation::FloatAtomic);
    let (regularize, _) = module(Kernel::Regularize, Accumulation::FloatAtomic);
    for (module, name, value) in [
        (&walk, "NEWTON_TOLERANCE", camera::NEWTON_TOLERANCE),
        (&walk, "EPSILON", f32::EPSILON),
        (&world, "EDGE_TOLERANCE", bvh::EDGE_TOLERANCE),
        (&world, "BOX_TOLERANCE", bvh::BOX_TOLERANCE),
        (&world, "MIN_DIRECTION", bvh::MIN_DIRECTION),
        (&world, "RADIANS", motion::RADIANS),
        (&loss, "RELATIVE_FLOOR", RELATIVE_FLOOR),
        (&regularize, "TV_EPSILON", TV_EPSILON),
    ] {
        assert_eq!(constant(module, name), f64::from(value), "{name}");
    }
}
