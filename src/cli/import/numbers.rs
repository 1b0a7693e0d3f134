//! Numbers behind the names of objects that would be called alike.

use std::collections::HashMap;

/// For each name that was wanted, the least number with which it may be free: searching from the start each time would take
/// time in proportion to the square of equal names.
#[derive(Debug, Default)]
pub(super) struct Numbers(HashMap<String, usize>);

impl Numbers {
    /// `wanted`, or if that is taken `wanted_2`, `wanted_3` and so on.
    pub(super) fn free(&mut self, wanted: &str, is_taken: impl Fn(&str) -> bool) -> String {
        if !is_taken(wanted) {
            return wanted.to_owned();
        }
        let number = self.0.entry(wanted.to_owned()).or_insert(2);
        loop {
            let name = format!("{wanted}_{number}");
            if !is_taken(&name) {
                return name;
            }
            *number += 1;
        }
    }
}
