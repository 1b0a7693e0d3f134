//! Scenes of Mitsuba's XML: what each kind of element becomes, and that all mistakes are reported at once, each at its place.

use super::*;

/// As Mitsuba's add-on for Blender writes scenes, with every kind of element.
const ROOM: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<scene version="3.0.0">
    <!-- film -->
    <default name="spp" value="16"/>
    <default name="side" value="12"/>
    <default name="turn" value="180"/>
    <path value="parts"/>
    <integrator type="path"><integer name="max_depth" value="5"/><boolean name="hide_emitters" value="TRUE"/></integrator>
    <sensor type="perspective" id="elm__0">
        <float name="fov" value="39.5"/>
        <string name="fov_axis" value="x"/>
        <transform name="to_world">
            <rotate y="1" angle="$turn"/>
            <translate z="5"/>
        </transform>
        <sampler type="independent"><integer name="sample_count" value="$spp"/></sampler>
        <film type="hdrfilm">
            <integer name="width" value="$side"/>
            <integer name="height" value=" 8 "/>
            <rfilter type="box"/>
        </film>
    </sensor>
    <bsdf type="twosided" id="mat-Material.001">
        <bsdf type="diffuse" id="inner"><rgb name="reflectance" value="0.8, 0.2 0.1"/></bsdf>
    </bsdf>
    <texture type="checkerboard" id="checks">
        <rgb name="color0" value="0.25"/>
        <spectrum name="color1" value="400:0.1, 700:0.5"/>
        <transform name="to_uv"><scale x="4" y="2"/></transform>
    </texture>
    <bsdf type="blendbsdf" id="both">
        <float name="weight" value="5e-1"/>
        <ref id="inner"/>
        <bsdf type="diffuse"><ref name="reflectance" id="checks"/></bsdf>
    </bsdf>
    <alias id="both" as="again"/>
    <shape type="sphere">
        <point name="center" value="0 0.5 0"/>
        <ref id="mat-Material.001"/>
    </shape>
    <include filename="floor.xml"/>
    <shape type="rectangle" id="lamp">
        <transform name="to_world">
            <matrix value="1 0 0  0 0 1  0 -1 0"/>
            <lookat origin="0 3 0" target="0 0 0" up="0 0 1"/>
        </transform>
        <emitter type="area"><rgb name="radiance" value="10"/></emitter>
    </shape>
</scene>
"#;

const FLOOR: &str = r#"<scene version="2.1.0">
    <shape type="obj">
        <string name="filename" value="square.obj"/>
        <ref id="again" name="bsdf"/>
    </shape>
    <include filename="sky.xml" name="behind"/>
</scene>
"#;

const SKY: &str = r#"<emitter version="3.0.0" type="constant"><spectrum name="radiance" value="0.5"/></emitter>"#;

fn room() -> Place {
    let place = Place::new();
    fs::create_dir(place.path("parts")).expect("writable");
    fs::write(place.path("room.xml"), ROOM).expect("writable");
    fs::write(place.path("parts/floor.xml"), FLOOR).expect("writable");
    fs::write(place.path("parts/sky.xml"), SKY).expect("writable");
    let square = "v -1 -1 0\nv 1 -1 0\nv 1 1 0\nvt 0 0\nvt 1 0\nvt 1 1\nf 1/1 2/2 3/3\n";
    fs::write(place.path("parts/square.obj"), square).expect("writable");
    place
}

#[test]
fn every_kind_of_element_becomes_its_twin() {
    let place = room();
    let (_, err) = place.expect(0, &["import", "room.xml", "-D", "side=10"]);
    assert_eq!(
        err,
        "wrote room.json: 1 view, 3 shapes; render it with: prbopt render room.json\n"
    );
    let number = |value: f64| json!({"type": "rgb", "value": value});
    let rows = json!([[1, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]]);
    assert_eq!(
        place.json("room.json"),
        json!({
            "integrator": {"type": "path", "max_depth": 5, "hide_emitters": true},
            "elm__0": {
                "type": "perspective", "fov": 39.5, "fov_axis": "x",
                "to_world": [{"rotate": {"axis": [0, 1, 0], "angle": 180}}, {"translate": [0, 0, 5]}],
                "sampler": {"type": "independent", "sample_count": 16},
                "film": {"type": "hdrfilm", "width": 10, "height": 8, "rfilter": {"type": "box"}}
            },
            "mat-Material_001": {
                "type": "twosided",
                "bsdf": {"type": "diffuse", "reflectance": {"type": "rgb", "value": [0.8, 0.2, 0.1]}}
            },
            "checks": {
                "type": "checkerboard", "color0": number(0.25),
                "color1": {"type": "spectrum", "value": [[400, 0.1], [700, 0.5]]}, "to_uv": [{"scale": [4, 2, 1]}]
            },
            "both": {
                "type": "blendbsdf", "weight": 0.5,
                "bsdf_2": {"type": "ref", "id": "mat-Material_001.bsdf"},
                "bsdf": {"type": "diffuse", "reflectance": {"type": "ref", "id": "checks"}}
            },
            "shape": {"type": "sphere", "center": [0, 0.5, 0], "bsdf": {"type": "ref", "id": "mat-Material_001"}},
            "shape_2": {"type": "obj", "filename": "parts/square.obj", "bsdf": {"type": "ref", "id": "both"}},
            "behind": {"type": "constant", "radiance": {"type": "spectrum", "value": 0.5}},
            "lamp": {
                "type": "rectangle",
                "to_world": [
                    {"matrix": rows}, {"look_at": {"origin": [0, 3, 0], "target": [0, 0, 0], "up": [0, 0, 1]}}
                ],
                "emitter": {"type": "area", "radiance": {"type": "rgb", "value": 10}}
            }
        })
    );
    let order: Vec<_> = place.json("room.json")["both"]
        .as_object()
        .expect("an object")
        .keys()
        .cloned()
        .collect();
    assert_eq!(
        order,
        ["type", "weight", "bsdf_2", "bsdf"],
        "the order of a blend means something"
    );
    place.expect(0, &["render", "room.json", "--spp", "1", "-o", "room.exr", "-q"]);
    // An existing file is not overwritten unasked; a file in another folder is found from there.
    let (_, err) = place.expect(2, &["import", "room.xml"]);
    assert!(err.contains("room.json: exists already"), "{err}");
    fs::create_dir(place.path("scenes")).expect("writable");
    let (out, _) = place.expect(0, &["import", "room.xml", "-o", "-"]);
    assert!(out.contains("\"width\": 12"), "{out}");
    place.expect(0, &["import", "room.xml", "-o", "scenes/room.json", "-q"]);
    assert_eq!(
        place.json("scenes/room.json")["shape_2"]["filename"],
        "../parts/square.obj"
    );
}

#[test]
fn old_names_are_spelled_as_today() {
    let place = room();
    let old = r#"<scene version="0.6.0">
        <sensor type="perspective">
            <float name="nearClip" value="0.1"/>
            <transform name="toWorld"><translate z="-4"/></transform>
            <film type="hdrfilm"><integer name="width" value="8"/><integer name="height" value="8"/></film>
        </sensor>
        <shape type="rectangle"><bsdf type="diffuse"><texture type="checkerboard" name="diffuseReflectance">
            <float name="uscale" value="4"/><float name="voffset" value="0.5"/>
        </texture></bsdf></shape>
    </scene>"#;
    fs::write(place.path("old.xml"), old).expect("writable");
    place.expect(0, &["import", "old.xml", "-q"]);
    let scene = place.json("old.json");
    assert_eq!(scene["sensor"]["near_clip"], 0.1);
    assert_eq!(scene["sensor"]["to_world"], json!([{"translate": [0, 0, -4]}]));
    assert_eq!(
        scene["shape"]["bsdf"]["reflectance"],
        json!({"type": "checkerboard", "to_uv": [{"translate": [0, 0.5]}, {"scale": [4, 1]}]})
    );
}

/// Members of a whole scene that are no objects give no object its name.
#[test]
fn objects_have_names_of_their_own() {
    let place = Place::new();
    let ids = ["type", "id", "optimize"];
    let shapes: String = ids
        .iter()
        .map(|id| format!(r#"<shape type="sphere" id="{id}"/>"#))
        .collect();
    let text = format!(r#"<scene version="3.0.0">{shapes}<sensor type="perspective"/></scene>"#);
    fs::write(place.path("ids.xml"), text).expect("writable");
    place.expect(0, &["import", "ids.xml"]);
    let scene = place.json("ids.json");
    let members = scene.as_object().expect("an object");
    assert!(
        members.len() == 4 && members.values().all(|member| member["type"].is_string()),
        "{members:?}"
    );
    place.expect(0, &["info", "ids.json"]);
}

/// Everything that cannot be imported is reported at once, with line and column of the XML, and nothing is written.
#[test]
fn all_mistakes_are_told_at_their_places() {
    let place = room();
    let wrong = r#"<scene version="3.0.0">
    <integer name="max" value="1.5"/>
    <shape type="rectangle"><bsdf type="difuse"/></shape>
    <shape type="sphere"><float name="radius" value="$r"/></shape>
    <shape type="sphere"><float name="raduis" value="1"/></shape>
    <ref id="nowhere"/>
    <banana/>
    <shape type="cube" colour="red"/>
    <shape type="obj"><string name="filename" value="none.obj"/></shape>
    <include filename="missing.xml"/>
    <include filename="wrong.xml"/>
    <bsdf type="diffuse" id="a"/><bsdf type="diffuse" id="a"/>
    <transform name="x"><rotate angle="3"/></transform>
    <default name="y" value="$twice"/>
</scene>"#;
    fs::write(place.path("wrong.xml"), wrong).expect("writable");
    let defines = ["-D", "idle=1", "-D", "twice=1", "-D", "twice=2"];
    let (_, err) = place.expect(2, &[&["import", "wrong.xml"][..], &defines].concat());
    for part in [
        "wrong.xml:2:5: \"1.5\" is no whole number",
        "wrong.xml:3:29: unknown type `difuse` at shape.bsdf: did you mean `diffuse`?",
        "wrong.xml:4:26: there is no parameter $r; put <default name=\"r\"",
        "wrong.xml:5:26: unknown parameter `raduis`",
        "wrong.xml:6:5: nothing has the id \"nowhere\"",
        "wrong.xml:7:5: <banana> is no element of a scene",
        "wrong.xml:8:5: <shape> has no attribute `colour`",
        "wrong.xml:9:23: there is no file none.obj",
        "missing.xml: cannot be read",
        "wrong.xml:11:5: wrong.xml would include itself",
        "wrong.xml:12:34: the id \"a\" is that of `a` too",
        "wrong.xml:13:5: the axis of a <rotate> is zero",
        "--define idle: nothing in the scene asks for $idle",
        "--define twice is there more than once, at last with \"2\"",
    ] {
        assert!(err.contains(part), "{part}\n{err}");
    }
    // A parameter that is lacking because of another mistake is not reported; every other mistake is, once.
    assert_eq!(err.lines().count(), 14, "{err}");
    assert!(!err.contains("lacks"), "{err}");
    assert!(!place.path("wrong.json").exists());
}

/// Files are looked for in the folders of `<path>`, the last one first, then beside the scene, as in Mitsuba, then beside the files
/// that it includes, up to the one that names them.
#[test]
fn files_are_found_in_the_order_of_mitsuba() {
    let place = Place::new();
    for folder in ["parts/more", "first", "last"] {
        fs::create_dir_all(place.path(folder)).expect("writable");
    }
    let write = |name: &str, inside: &str| {
        fs::write(place.path(name), format!("<scene version=\"3.0.0\">{inside}</scene>")).expect("writable");
    };
    let mesh = |name: &str| format!(r#"<shape type="obj"><string name="filename" value="{name}"/></shape>"#);
    write(
        "all.xml",
        r#"<path value="first"/><path value="last"/><include filename="parts/outer.xml"/>"#,
    );
    write("parts/outer.xml", r#"<include filename="parts/more/inner.xml"/>"#);
    let inner = ["near.obj", "between.obj", "far.obj", "innermost.obj", "both.obj"]
        .map(mesh)
        .concat();
    write("parts/more/inner.xml", &inner);
    let triangle = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n";
    let files = [
        "parts/more/near.obj",
        "parts/near.obj",
        "parts/between.obj",
        "between.obj",
        "far.obj",
        "first/far.obj",
        "parts/more/innermost.obj",
        "first/both.obj",
        "last/both.obj",
    ];
    for file in files {
        fs::write(place.path(file), triangle).expect("writable");
    }
    place.expect(0, &["import", "all.xml"]);
    let scene = place.json("all.json");
    let mut found: Vec<_> = scene
        .as_object()
        .expect("a scene")
        .values()
        .filter_map(|of| of["filename"].as_str())
        .collect();
    found.sort_unstable();
    let expected = [
        "between.obj",
        "first/far.obj",
        "last/both.obj",
        "parts/more/innermost.obj",
        "parts/near.obj",
    ];
    assert_eq!(found, expected);
}

/// Unknown plugins are reported together with missing files, in the order of the files.
#[test]
fn unknown_plugins_and_missing_files_are_told_together() {
    let place = room();
    let wrong = r#"<scene version="3.0.0">
    <include filename="parts.xml"/>
    <shape type="hair"><string name="filename" value="none.hair"/></shape>
    <shape type="sphere"><bsdf type="diffuse">
        <texture type="bitmap" name="reflectance"><string name="filename" value="none.png"/></texture>
    </bsdf></shape>
    <include filename="missing.xml"/>
</scene>"#;
    let parts = r#"<scene version="3.0.0"><shape type="obj">
    <string name="filename" value="none.obj"/><bsdf type="hapke"/></shape></scene>"#;
    fs::write(place.path("wrong.xml"), wrong).expect("writable");
    fs::write(place.path("parts.xml"), parts).expect("writable");
    let (_, err) = place.expect(2, &["import", "wrong.xml"]);
    let told: Vec<&str> = err.lines().collect();
    let expected = [
        "error: wrong.xml:3:5: Mitsuba's BSDF `hair` is not supported yet",
        "wrong.xml:3:24: there is no file none.hair",
        "wrong.xml:5:51: there is no file none.png",
        "parts.xml:2:5: there is no file none.obj",
        "parts.xml:2:47: ",
        "missing.xml: cannot be read",
    ];
    assert_eq!(told.len(), expected.len(), "{err}");
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.starts_with(expected), "{expected}\n{err}");
    }
}

/// Versions are told apart from none; a scene without a sensor needs one before it is rendered.
#[test]
fn versions_and_sensors_are_asked_for() {
    let place = Place::new();
    for (version, part) in [
        ("", "lacks its version; write version=\"3.0.0\""),
        (
            "version=\"x\"",
            "has the version \"x\", expected one up to 3 such as 3.0.0",
        ),
        (
            "version=\"9.9.9\"",
            "has the version \"9.9.9\", expected one up to 3 such as 3.0.0",
        ),
        (
            "version=\"4.0.0\"",
            "has the version \"4.0.0\", expected one up to 3 such as 3.0.0",
        ),
    ] {
        fs::write(place.path("a.xml"), format!("<scene {version}></scene>")).expect("writable");
        let (_, err) = place.expect(2, &["import", "a.xml"]);
        assert_eq!(err, format!("error: a.xml:1:1: {part}\n"));
    }
    for version in ["0.6.0", "1.0", "2.1.0", "3.9.1", "3"] {
        let text = format!("<scene version=\"{version}\"><shape type=\"sphere\"/></scene>");
        fs::write(place.path("a.xml"), text).expect("writable");
        let (_, err) = place.expect(0, &["import", "a.xml", "--force"]);
        assert_eq!(
            err,
            "wrote a.json: 0 views, 1 shape; it has no sensor, without which nothing is rendered: add one and render it \
             with: prbopt render a.json\n"
        );
    }
}

/// Short files that would grow without end are refused at once, in one sentence with its place.
#[test]
fn what_grows_without_end_is_refused() {
    let place = Place::new();
    let write = |name: &str, inside: &str| {
        fs::write(place.path(name), format!("<scene version=\"3.0.0\">\n{inside}</scene>")).expect("writable");
    };
    let mut bomb = "<default name=\"a0\" value=\"xxxxxxxxxx\"/>\n".to_owned();
    for i in 1..20 {
        let value = format!("$a{}", i - 1).repeat(10);
        bomb.push_str(&format!("<default name=\"a{i}\" value=\"{value}\"/>\n"));
    }
    write("bomb.xml", &format!("{bomb}<ref id=\"later\"/>"));
    let refused = |name: &str| {
        let begun = Instant::now();
        let (_, err) = place.expect(2, &["import", name]);
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        err
    };
    assert_eq!(
        refused("bomb.xml"),
        "error: bomb.xml:6:1: $a3 makes this attribute longer than 65536 bytes; give that parameter a shorter value\n"
    );
    for i in 0..14 {
        write(
            &format!("{i}.xml"),
            &format!("<include filename=\"{}.xml\"/>", i + 1).repeat(10),
        );
    }
    write("14.xml", "");
    assert_eq!(
        refused("0.xml"),
        "error: 13.xml:2:197: with 14.xml, the scene includes more than 4096 files or 256 MiB, counted each time they are \
         named; include fewer\n"
    );
    // Five times 64 MiB, less than a dozen files.
    fs::write(
        place.path("large.xml"),
        format!("<scene version=\"3.0.0\"/>{}", " ".repeat((64 << 20) - 30)),
    )
    .expect("writable");
    write("all.xml", &"<include filename=\"large.xml\"/>\n".repeat(5));
    let err = refused("all.xml");
    assert!(
        err.starts_with("error: all.xml:6:1: with large.xml, the scene includes more than"),
        "{err}"
    );
}

/// Objects without names are numbered in the order of the file, in time in proportion to their number.
#[test]
fn objects_without_names_are_numbered() {
    let place = Place::new();
    let shapes = "<shape type=\"sphere\"/>".repeat(20_000);
    let text = format!("<scene version=\"3.0.0\"><shape type=\"cube\" id=\"shape_2\"/>{shapes}</scene>");
    fs::write(place.path("many.xml"), text).expect("writable");
    let begun = Instant::now();
    place.expect(0, &["import", "many.xml", "-q"]);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let scene = place.json("many.json");
    let names: Vec<&String> = scene.as_object().expect("a scene").keys().collect();
    assert_eq!(names[..4], ["shape_2", "shape", "shape_3", "shape_4"]);
    assert_eq!(names[20_000], "shape_20001");
}
