// The parameters of splats, and the background.

#import bind/splats
#import bind/parameters
#import transport/splats/splat

fn splat_parameters(i: u32) -> Parameters {
    let position = settings.position.first + 2u * i;
    let scale = settings.scale.first + 2u * i;
    return Parameters(
        vec2f(value(position), value(position + 1u)),
        vec2f(value(scale), value(scale + 1u)),
        value(settings.rotation.first + i),
        value_color(settings.color.first + 3u * i),
        value(settings.opacity.first + i),
    );
}

fn splat_background() -> vec3f {
    if settings.background.first == NONE {
        return vec3f(0.0);
    }
    return value_color(settings.background.first);
}
