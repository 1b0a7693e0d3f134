//! A live page: the report of a run as it goes, a view through a camera that the reader turns, and commands to the run.
//!
//! The run calls the page as its [`Observer`] before each iteration: the page then renders within its [`budget`] and says
//! how the run is to go on. Everything else happens in threads of the [`server`], which touch neither device nor run:
//! they leave orders on a [`desk`] and take events from it.
//!
//! Renders for the page never change a bit of a run. Their random numbers are a stream of their own ([`Pass::Watch`]),
//! their camera is a sensor of its own behind all others, and between iterations the run reads nothing that a render
//! writes.
//!
//! [`Pass::Watch`]: crate::transport::rays::random::Pass::Watch

mod budget;
mod camera;
mod desk;
mod guard;
mod http;
mod magnitude;
mod reports;
mod server;
mod shade;
mod viewer;
mod wanted;

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::device::{self, Device};
use crate::optimize::{Observer, Wish};
use crate::output::metrics::Figures;
use crate::params::Kind;
use crate::report::{colormap, page};
use crate::resident::rows;
use crate::scene::{Scene, SensorKind};

use desk::{Desk, Topic};
use guard::Guard;
use server::{Server, Site};
use viewer::{Lens, Looks, Time, Viewer};
use wanted::{Choice, Moves, Show};

pub use budget::SHARE;
pub use camera::Subject;
pub use reports::Reports;

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/page.js");

/// The first port tried for a page where no address is given, and how many are tried, from it on.
pub const PORT: u16 = 7878;
const PORTS: u16 = 20;

/// Least time between two events that send the figures of an iteration.
const FIGURES: Duration = Duration::from_millis(200);
/// Time between two checks for a new report.
const REPORTS: Duration = Duration::from_secs(1);
/// How long the end of a run waits for pages to read the last report, and then to read that it is over.
const LAST_REPORT: Duration = Duration::from_secs(2);
const FAREWELL: Duration = Duration::from_millis(500);
/// A run that is paused, or over, looks at least so often whether something has changed.
const IDLE: Duration = Duration::from_millis(100);

/// What a page shows.
#[derive(Debug)]
pub struct Setting<'a> {
    pub title: String,
    pub scene: &'a Scene,
    pub subject: Option<Subject>,
    pub reports: Reports,
    /// What has become of the run, in a word.
    pub state: &'static str,
    pub seed: u64,
    /// Length of the run.
    pub iterations: u32,
    /// Set to stop the run; None where nothing runs, so that there is nothing to command.
    pub stop: Option<Arc<AtomicBool>>,
}

/// A page, served until it is dropped.
#[derive(Debug)]
pub struct Page {
    desk: Arc<Desk>,
    /// Renders for the page; None if no sensor makes pictures.
    viewer: Option<Mutex<Viewer>>,
    site: Arc<Site>,
    address: SocketAddr,
    /// Iterations so far.
    epoch: AtomicU64,
    clocks: Mutex<Clocks>,
    _server: Server,
}

#[derive(Debug)]
struct Clocks {
    figures: Option<Instant>,
    /// Figures that were not told yet.
    untold: Option<Value>,
    reports: Instant,
    made: Option<SystemTime>,
}

impl Page {
    /// Serves a page at `address`, or on this machine at the first of some ports that is free.
    ///
    /// # Errors
    /// The address is taken, or not this machine's.
    pub fn open(address: Option<SocketAddr>, setting: Setting) -> Result<Self> {
        let listener = listen(address)?;
        let address = listener.local_addr()?;
        let scene = setting.scene;
        let lenses: Vec<Lens> = scene.sensors.iter().map(|sensor| lens(scene, sensor)).collect();
        let choice = Choice {
            moves: lenses.iter().map(|lens| lens.moves).collect(),
            shows: shows(scene, setting.stop.is_some()),
        };
        let guard = Guard::new(address)?;
        let page = html(&setting, &choice).into_bytes().into();
        let has_camera = choice.has_camera();
        let desk = Arc::new(Desk::new(choice, setting.stop));
        let viewer = has_camera.then(|| {
            Mutex::new(Viewer::new(Looks {
                lenses,
                subject: setting.subject,
                is_solid: scene.field.is_none() && scene.world.media.is_empty(),
                painted: textures(scene),
                positions: scene.splats.as_ref().map(|splats| splats.arrays()[0].path.clone()),
                seed: setting.seed,
            }))
        });
        desk.tell(Topic::Standing, &json!({ "state": setting.state }));
        if let Reports::Page(_) = setting.reports {
            desk.tell(Topic::Report, &json!({}));
        }
        let site = Arc::new(Site {
            guard,
            desk: Arc::clone(&desk),
            reports: setting.reports,
            page,
        });
        let server = Server::start(listener, Arc::clone(&site))?;
        let clocks = Clocks {
            figures: None,
            untold: None,
            reports: Instant::now(),
            made: None,
        };
        Ok(Self {
            desk,
            viewer,
            site,
            address,
            epoch: AtomicU64::new(0),
            clocks: Mutex::new(clocks),
            _server: server,
        })
    }

    /// The address to open in a browser, with its token.
    pub fn url(&self) -> String {
        let token = self.site.guard.token();
        // 0.0.0.0 (all addresses) cannot be opened in a browser; localhost reaches it.
        match self.address.ip().is_unspecified() {
            true => format!("http://localhost:{}/?token={token}", self.address.port()),
            false => format!("http://{}/?token={token}", self.address),
        }
    }

    /// The command that brings the page to another machine, where `HOST` is this one's name.
    pub fn tunnel(&self) -> String {
        let port = self.address.port();
        match self.address.ip().is_unspecified() {
            true => format!("ssh -L {port}:localhost:{port} HOST"),
            false => format!("ssh -L {port}:{} HOST", self.address),
        }
    }

    /// Sends all pages the last figures and word of the last report, which is on the disk, and then that nothing more
    /// will come, and why.
    pub fn conclude(&self, why: &str) {
        let untold = {
            let mut clocks = self.clocks.lock().unwrap_or_else(PoisonError::into_inner);
            clocks.untold.take()
        };
        if let Some(figures) = untold {
            self.desk.tell(Topic::Figures, &figures);
        }
        if self.site.reports.made().is_some() {
            self.desk.tell_last_report(LAST_REPORT);
        }
        self.end(why);
    }

    /// Tells all pages that nothing more will come, and why.
    pub fn end(&self, why: &str) {
        self.desk.end(why, FAREWELL);
    }

    /// Shows a device's scene until `stop` is set.
    ///
    /// # Errors
    /// The device's.
    pub fn show(&self, device: &mut dyn Device, stop: &AtomicBool) -> Result<()> {
        while !stop.load(Ordering::SeqCst) {
            self.look(device, Time::Free)?;
        }
        Ok(())
    }

    /// Renders for the page if it is time; else, if no iteration waits for it, waits at the desk for [`IDLE`] at most.
    fn look(&self, device: &mut dyn Device, time: Time) -> device::Result<()> {
        let order = self.desk.order();
        let mut made = None;
        if let (Some(order), Some(viewer)) = (&order, &self.viewer) {
            let mut viewer = viewer.lock().unwrap_or_else(PoisonError::into_inner);
            made = viewer.look(device, order, self.epoch.load(Ordering::SeqCst), time)?;
        }
        match made {
            Some((png, about)) => self.desk.show(png, &about),
            None if time == Time::Free => self.desk.wait(order.map(|order| order.number), IDLE),
            None => {}
        }
        Ok(())
    }

    /// Sends pages what is due: figures, with `all` even if others were sent just before, and that there is a new report.
    fn report(&self, all: bool) {
        let mut clocks = self.clocks.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let due = all || clocks.figures.is_none_or(|at| now - at >= FIGURES);
        if let Some(figures) = clocks.untold.take_if(|_| due) {
            self.desk.tell(Topic::Figures, &figures);
            clocks.figures = Some(now);
        }
        if now - clocks.reports >= REPORTS {
            clocks.reports = now;
            let made = self.site.reports.made();
            if made != clocks.made {
                clocks.made = made;
                // None before the run's first report, or if that of a run that it replaces was deleted.
                if made.is_some() {
                    self.desk.tell(Topic::Report, &json!({}));
                }
            }
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.end("the program has ended, with an error that it has told where it was started");
    }
}

impl Observer for Page {
    fn iterated(&self, figures: &Figures) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
        let mut clocks = self.clocks.lock().unwrap_or_else(PoisonError::into_inner);
        clocks.untold = serde_json::to_value(figures).ok();
    }

    fn watches(&self) -> bool {
        self.viewer.is_some()
    }

    fn stepping(&self, device: &mut dyn Device) -> device::Result<()> {
        let (Some(order), Some(viewer)) = (self.desk.order(), &self.viewer) else {
            return Ok(());
        };
        let mut viewer = viewer.lock().unwrap_or_else(PoisonError::into_inner);
        viewer.read_gradient(device, &order, self.epoch.load(Ordering::SeqCst))
    }

    fn attend(&self, device: &mut dyn Device) -> device::Result<Wish> {
        if self.desk.takes_save() {
            return Ok(Wish::Save);
        }
        let paused = self.desk.is_paused();
        self.report(paused);
        self.look(device, if paused { Time::Free } else { Time::Between })?;
        Ok(if paused { Wish::Wait } else { Wish::GoOn })
    }

    fn saved(&self, iteration: u32) {
        self.desk.tell(Topic::Saved, &json!({ "iteration": iteration }));
    }
}

fn listen(address: Option<SocketAddr>) -> Result<TcpListener> {
    if let Some(address) = address {
        return TcpListener::bind(address).with_context(|| {
            format!("--serve={address}: the page cannot be served there; give another address, or none")
        });
    }
    let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let mut bound = TcpListener::bind(local(PORT));
    for port in PORT + 1..PORT + PORTS {
        if bound.is_ok() {
            break;
        }
        bound = TcpListener::bind(local(port));
    }
    let last = PORT + PORTS - 1;
    bound.with_context(|| {
        format!(
            "no port from {PORT} to {last} of this machine is free for the page; name one, as in --serve=127.0.0.1:9000"
        )
    })
}

/// How the page can move a sensor, and the colour space of its pictures.
fn lens(scene: &Scene, sensor: &crate::scene::Sensor) -> Lens {
    let moves = match sensor.kind {
        _ if scene.splats.is_some() => Moves::Flat,
        SensorKind::Perspective | SensorKind::ThinLens { .. } => Moves::Perspective,
        SensorKind::Orthographic => Moves::Parallel,
        SensorKind::Radiancemeter | SensorKind::Irradiancemeter(_) | SensorKind::Distant { .. } => Moves::No,
    };
    Lens {
        moves,
        space: sensor.color_space,
    }
}

/// The paths of the image textures that a run optimises, each with the surfaces that it lies on.
fn textures(scene: &Scene) -> Vec<(String, Vec<magnitude::Painted>)> {
    let tuned = |of: &&crate::scene::Array| of.tuning.is_some() && of.kind == Kind::Texture;
    let arrays = scene.arrays();
    let paths = arrays.iter().copied().filter(tuned).map(|of| of.path.clone());
    paths
        .map(|path| (path.clone(), magnitude::painted(scene, &path)))
        .collect()
}

/// What can be shown of a scene. Gradients are those of a run's parameters that have a place in the picture.
fn shows(scene: &Scene, is_run: bool) -> Vec<Show> {
    let mut shows = vec![Show::Picture];
    if scene.splats.is_none() {
        shows.push(Show::Depth);
    }
    shows.push(Show::Opacity);
    for of in scene.visit().into_iter().filter(|_| is_run) {
        let show = Show::Gradient(of.array.path.clone());
        if of.array.tuning.is_some() && magnitude::has_place(of.array.kind) && !shows.contains(&show) {
            shows.push(show);
        }
    }
    shows
}

/// The page's HTML, with what its script needs to know of the scene as JSON.
fn html(setting: &Setting, choice: &Choice) -> String {
    let sensors: Vec<Value> = setting
        .scene
        .sensors
        .iter()
        .zip(&choice.moves)
        .map(|(sensor, moves)| {
            json!({
                "name": sensor.name, "moves": moves, "size": [sensor.width, sensor.height], "focal": sensor.focal,
                "to_world": rows(&sensor.to_world), "held_out": sensor.held_out,
            })
        })
        .collect();
    let subject = setting.subject.map(|subject| {
        json!({
            "center": subject.center.to_array(), "radius": subject.radius, "up": subject.up.to_array(),
        })
    });
    let run = setting
        .stop
        .as_ref()
        .map(|_| json!({ "iterations": setting.iterations }));
    let data = json!({
        "title": setting.title, "sensors": sensors, "subject": subject, "shows": choice.shows,
        "colors": (0..=16).map(|i| colormap::amounts()[i * 255 / 16]).collect::<Vec<_>>(),
        "first": choice.first().sensor, "has_camera": choice.has_camera(), "run": run,
    });
    let title = page::escape(&setting.title);
    // A `</script>` in a string would end the element, so `<` is escaped.
    let data = data.to_string().replace('<', "\\u003c");
    let parts = [
        ("{{title}}", title),
        ("{{style}}", STYLE.to_owned()),
        ("{{data}}", data),
        ("{{script}}", SCRIPT.to_owned()),
    ];
    page::fill(PAGE, &parts)
}
