//! Whether a scene fits the machine's memory.

use crate::device::{DeviceError, Result};
use crate::resident::pages::physical_bytes;

/// Refuses parameters that need more bytes than the machine's memory has, where the system tells its size.
pub(super) fn check_fits(needed: u64) -> Result<()> {
    match physical_bytes() {
        Some(there) if needed > there => Err(too_large(needed, there)),
        _ => Ok(()),
    }
}

fn too_large(needed: u64, there: u64) -> DeviceError {
    let gib = |bytes: u64| bytes as f64 / f64::from(1u32 << 30);
    let edge = (there as f64 / needed as f64).cbrt();
    DeviceError::TooLarge(format!(
        "the parameters need {:.1} GiB with gradients and moments at the finest resolution, the machine has \
         {:.1} GiB; take {:.2} times the resolution along each edge, or one stage less",
        gib(needed),
        gib(there),
        edge
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_fit_is_told() {
        assert!(check_fits(1).is_ok());
        let message = too_large(8 << 30, 1 << 30).to_string();
        assert!(
            message.contains("8.0 GiB") && message.contains("0.50 times"),
            "{message}"
        );
    }
}
