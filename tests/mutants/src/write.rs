//! A file with all its mutations written in, each behind a switch.

use std::ops::Range;

use crate::find::{Form, Mutation};

/// A mutation with its number, and where its replacement lies in the file that was written.
#[derive(Debug, Clone)]
pub struct Placed {
    pub id: u32,
    pub mutation: Mutation,
    /// Bytes of the replacement, and of all that the mutation inserted.
    pub replacement: Range<usize>,
    pub whole: Range<usize>,
}

/// Writes the mutations into `source` and notes where. One runs at a time: replacements need no others within.
pub fn write(source: &str, mutations: &mut [Placed]) -> String {
    // Where several begin the outer one comes first, where several end it comes last.
    let mut pieces: Vec<(usize, i64, usize, bool)> = Vec::new();
    for (i, placed) in mutations.iter().enumerate() {
        let (order, m) = (i as i64, &placed.mutation);
        pieces.push((m.start, order + 1, i, true));
        pieces.push((m.end, -1 - order, i, false));
    }
    // An insertion at the end of one expression stands before those at the beginning of the next; of one that is empty
    // (`Form::Return`) the end follows its beginning.
    pieces.sort_by_key(|&(at, order, i, begins)| {
        let empty = mutations[i].mutation.form == Form::Return;
        (
            at,
            if empty { 1 } else { 2 * i64::from(begins) },
            if empty {
                2 * i as i64 + i64::from(!begins)
            } else {
                order
            },
        )
    });
    let (mut out, mut done) = (String::with_capacity(4 * source.len()), 0);
    for (at, _, i, begins) in pieces {
        out.push_str(&source[done..at]);
        done = at;
        let placed = &mut mutations[i];
        let (id, with) = (placed.id, &placed.mutation.with);
        let switch = format!("crate::mutation_switch::is({id})");
        if begins {
            placed.whole.start = out.len();
            match placed.mutation.form {
                Form::Replace => out.push_str(&format!("(if {switch} {{ ")),
                Form::Omit => out.push_str(&format!("if !{switch} {{ ")),
                Form::Return => out.push_str(&format!(" if {switch} {{ return ")),
            }
            placed.replacement.start = out.len();
            out.push_str(with);
            placed.replacement.end = out.len();
            if placed.mutation.form == Form::Replace {
                out.push_str(" } else { ");
            }
        } else {
            out.push_str(match placed.mutation.form {
                Form::Replace => " })",
                Form::Omit => " }",
                Form::Return => "; }",
            });
            placed.whole.end = out.len();
        }
    }
    out.push_str(&source[done..]);
    out
}

/// The module by which one process runs the mutation that the environment names, or records which it reaches. It is pasted
/// into a crate whose lints are stricter than generated code needs.
pub const SWITCH: &str = r#"
#[doc(hidden)]
#[allow(missing_docs, clippy::all, missing_debug_implementations)]
pub mod mutation_switch {
    use std::io::Write;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    const UNKNOWN: u32 = u32::MAX;
    const TRACING: u32 = u32::MAX - 1;
    static ACTIVE: AtomicU32 = AtomicU32::new(UNKNOWN);
    static SEEN: [AtomicBool; 1 << 16] = [const { AtomicBool::new(false) }; 1 << 16];

    #[inline(always)]
    pub fn is(id: u32) -> bool {
        let active = ACTIVE.load(Ordering::Relaxed);
        if active >= TRACING { slowly(active, id) } else { active == id }
    }

    #[cold]
    #[inline(never)]
    fn slowly(mut active: u32, id: u32) -> bool {
        if active == UNKNOWN {
            let named = std::env::var("MUTATION").ok().and_then(|v| v.parse().ok());
            active = named.unwrap_or(if std::env::var_os("MUTATION_TRACE").is_some() { TRACING } else { 0 });
            ACTIVE.store(active, Ordering::Relaxed);
        }
        if active == TRACING && !SEEN[id as usize].swap(true, Ordering::Relaxed) {
            let path = std::env::var_os("MUTATION_TRACE").expect("it is set");
            let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
            let _ = file.and_then(|mut f| f.write_all(format!("{id}\n").as_bytes()));
        }
        active == id
    }
}
"#;
