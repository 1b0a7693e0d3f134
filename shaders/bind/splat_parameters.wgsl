// The parameters of splats, and the background.

#import bind/splats
#import bind/parameters
#import transport/splats/splat

fn splat_parameters(i: u32) -> Parameters {
    let position = vec2u(settings.position_at + 2u * i) + vec2u(0u, 1u);
    let scale = vec2u(settings.scale_at + 2u * i) + vec2u(0u, 1u);
    let color = vec3u(settings.color_at + 3u * i) + vec3u(0u, 1u, 2u);
    return Parameters(
        vec2f(values[position.x], values[position.y]),
        vec2f(values[scale.x], values[scale.y]),
        values[settings.rotation_at + i],
        vec3f(values[color.x], values[color.y], values[color.z]),
        values[settings.opacity_at + i],
    );
}

fn splat_background() -> vec3f {
    if settings.background_at == NONE {
        return vec3f(0.0);
    }
    let at = settings.background_at;
    return vec3f(values[at], values[at + 1u], values[at + 2u]);
}
