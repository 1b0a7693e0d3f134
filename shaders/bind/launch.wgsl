// Buffers of every pass over rays: its launch, the scene, the cameras and small tables.

#import common/layout

@group(0) @binding(0) var<uniform> launch: Launch;
@group(0) @binding(1) var<uniform> scene: Scene;
#ifdef WRITE_TABLES
@group(0) @binding(2) var<storage, read_write> tables: array<u32>;
#else
@group(0) @binding(2) var<storage, read> tables: array<u32>;
#endif
@group(0) @binding(3) var<storage, read> sensors: array<Sensor>;
