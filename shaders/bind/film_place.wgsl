// The film that light is splatted onto: which positions and pixels are within its reach. PARTICLES: light among surfaces.

#ifdef PARTICLES
#import bind/tracer
#else
#import bind/light
#endif

// Whether a film position is so near the film that the filter may reach a pixel.
fn path_is_near(at: vec2f) -> bool {
    let reach = film_filter().radius + 0.5;
    return all(at > vec2f(-reach)) && all(at < vec2f(film_size()) + reach);
}

// Whether a pixel is one of the film's.
fn film_has(x: i32, y: i32) -> bool {
    let size = film_size();
    return x >= 0 && y >= 0 && x < i32(size.x) && y < i32(size.y);
}
