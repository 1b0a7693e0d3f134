//! The batch of each iteration. Every random choice is a function of the seed and the iteration, so that a run can
//! resume from any iteration without saved random state.

use rand_core::Rng;
use rand_pcg::Pcg64;

use crate::device::Batch;
use crate::resident::layout::SensorRecord;
use crate::scene::BatchRule;
use crate::transport::rays::pixel::PixelTable;
use crate::transport::rays::random::{Pass, pass_key, random_index};

/// Generates the batch of each iteration.
#[derive(Debug)]
pub struct Batches {
    rule: BatchRule,
    sensors: Vec<SensorRecord>,
    training: Vec<u32>,
    seed: u64,
    /// All pixels of all training views, for batch rules that use them.
    whole: Batch,
}

impl Batches {
    /// Batches over the sensors whose indices are in `training`.
    ///
    /// # Errors
    /// A sentence, if there is no view or a batch would have more pixels than 32 bits can number.
    pub fn new(rule: BatchRule, sensors: &[SensorRecord], training: Vec<u32>, seed: u64) -> Result<Self, String> {
        if training.is_empty() {
            return Err("there is no view to learn from: every sensor is held out or has no reference".into());
        }
        let looked_at: &[u32] = match rule {
            BatchRule::Views(_) => &[],
            BatchRule::AllViews | BatchRule::Rays(_) => &training,
        };
        let table = PixelTable::new(sensors, looked_at)
            .ok_or("the training views together have more than 2³² pixels; take `views` as the batch, or downscale")?;
        let drawn = match rule {
            BatchRule::Rays(count) => Some(count),
            _ => None,
        };
        let batches = Self {
            rule,
            sensors: sensors.to_vec(),
            training,
            seed,
            whole: Batch { table, drawn },
        };
        match rule {
            BatchRule::Views(count) if PixelTable::new(sensors, &batches.largest_views(count)).is_none() => Err(
                format!("{count} views have more than 2³² pixels; take fewer an iteration"),
            ),
            _ => Ok(batches),
        }
    }

    /// The batch of an iteration.
    pub fn at(&self, iteration: u32) -> Batch {
        match self.rule {
            BatchRule::AllViews | BatchRule::Rays(_) => self.whole.clone(),
            BatchRule::Views(count) => self.of_views(&self.views(iteration, count)),
        }
    }

    /// The batch of the most pixels of all iterations.
    pub fn largest(&self) -> Batch {
        match self.rule {
            BatchRule::AllViews | BatchRule::Rays(_) => self.whole.clone(),
            BatchRule::Views(count) => self.of_views(&self.largest_views(count)),
        }
    }

    fn of_views(&self, views: &[u32]) -> Batch {
        let table = PixelTable::new(&self.sensors, views).expect("`new` has checked the largest views");
        Batch { table, drawn: None }
    }

    /// The `count` largest views.
    fn largest_views(&self, count: u32) -> Vec<u32> {
        let mut views = self.training.clone();
        let pixels = |&v: &u32| {
            let sensor = &self.sensors[v as usize];
            u64::from(sensor.width) * u64::from(sensor.height)
        };
        views.sort_by_key(|v| std::cmp::Reverse(pixels(v)));
        views.truncate(count as usize);
        views
    }

    /// The views of an iteration: groups of `count` from an order that is reshuffled after each round. The last group
    /// of a round is filled up from its beginning, so that no group contains a view twice.
    fn views(&self, iteration: u32, count: u32) -> Vec<u32> {
        let total = self.training.len() as u32;
        let count = count.clamp(1, total);
        let groups = total.div_ceil(count);
        let order = self.order(iteration / groups);
        let first = iteration % groups * count;
        (0..count).map(|i| order[((first + i) % total) as usize]).collect()
    }

    /// The order of the views in round `round`, by a Fisher-Yates shuffle.
    fn order(&self, round: u32) -> Vec<u32> {
        let [a, b, c, d] = pass_key(self.seed, round, Pass::Host).map(u128::from);
        let mut stream = Pcg64::new(a | b << 32 | c << 64 | d << 96, Pass::Host as u128);
        let mut order = self.training.clone();
        for i in (1..order.len()).rev() {
            order.swap(i, random_index(stream.next_u32(), i as u32 + 1) as usize);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;

    fn sensors(count: usize) -> Vec<SensorRecord> {
        let sensor = |i| SensorRecord {
            width: 4 + i as u32,
            height: 3,
            ..SensorRecord::zeroed()
        };
        (0..count).map(sensor).collect()
    }

    #[test]
    fn each_round_shows_every_view_and_rounds_differ() {
        let training: Vec<u32> = (0..10).filter(|v| v % 3 != 0).collect();
        let batches = Batches::new(BatchRule::Views(2), &sensors(10), training.clone(), 5).expect("valid");
        let round = |r: u32| -> Vec<u32> { (0..3).flat_map(|k| batches.at(3 * r + k).table.sensors).collect() };
        let mut orders = Vec::new();
        for r in 0..6 {
            let order = round(r);
            let mut seen = order.clone();
            seen.sort_unstable();
            assert_eq!(seen, training, "round {r}");
            orders.push(order);
        }
        orders.sort();
        orders.dedup();
        assert!(orders.len() > 3, "orders repeat: {orders:?}");
    }

    #[test]
    fn a_group_never_holds_a_view_twice() {
        let batches = Batches::new(BatchRule::Views(4), &sensors(7), (0..7).collect(), 1).expect("valid");
        for i in 0..20 {
            let mut views = batches.at(i).table.sensors;
            assert_eq!(views.len(), 4);
            views.sort_unstable();
            views.dedup();
            assert_eq!(views.len(), 4, "iteration {i}");
        }
        let more = Batches::new(BatchRule::Views(9), &sensors(2), vec![0, 1], 1).expect("valid");
        assert_eq!(more.at(0).table.sensors.len(), 2);
    }

    #[test]
    fn batches_depend_on_seed_and_iteration_alone() {
        let of = |seed| Batches::new(BatchRule::Views(1), &sensors(9), (0..9).collect(), seed).expect("valid");
        let first: Vec<Batch> = (0..30).map(|i| of(3).at(i)).collect();
        let again: Vec<Batch> = (0..30).rev().map(|i| of(3).at(i)).rev().collect();
        assert_eq!(first, again);
        let other: Vec<Batch> = (0..30).map(|i| of(4).at(i)).collect();
        assert_ne!(first, other);
    }

    #[test]
    fn rays_are_drawn_from_all_training_views() {
        let batches = Batches::new(BatchRule::Rays(100), &sensors(4), vec![1, 3], 0).expect("valid");
        let batch = batches.at(7);
        assert_eq!((batch.pixels(), batch.table.len()), (100, 5 * 3 + 7 * 3));
        assert_eq!(batches.largest().pixels(), 100);
        assert!(Batches::new(BatchRule::AllViews, &sensors(4), vec![], 0).is_err());
    }

    #[test]
    fn too_many_pixels_are_refused() {
        let mut huge = sensors(2);
        for sensor in &mut huge {
            (sensor.width, sensor.height) = (1 << 16, 1 << 15);
        }
        assert!(Batches::new(BatchRule::AllViews, &huge, vec![0, 1], 0).is_err());
        assert!(Batches::new(BatchRule::Views(2), &huge, vec![0, 1], 0).is_err());
        assert!(Batches::new(BatchRule::Views(1), &huge, vec![0, 1], 0).is_ok());
    }

    /// The shuffle of a round, written out: Pcg64 seeded by the bytes of the round's key, from the last place to the
    /// second, each swapped with one before it or itself.
    #[test]
    fn orders_are_shuffles_by_the_rounds_key() {
        let training: Vec<u32> = (0..9).map(|v| 2 * v).collect();
        let batches = Batches::new(BatchRule::Views(9), &sensors(18), training.clone(), 77).expect("valid");
        for round in 0..4 {
            let key = pass_key(77, round, Pass::Host).map(u32::to_le_bytes);
            let seed: [u8; 16] = key.as_flattened().try_into().expect("four words");
            let mut stream = Pcg64::new(u128::from_le_bytes(seed), Pass::Host as u128);
            let mut order = training.clone();
            for place in [8usize, 7, 6, 5, 4, 3, 2, 1] {
                let scaled = u64::from(stream.next_u32()) * (place as u64 + 1);
                order.swap(place, (scaled >> 32) as usize);
            }
            assert_eq!(batches.at(round).table.sensors, order, "round {round}");
        }
    }

    /// Seven views in groups of four take two iterations a round, the second filled up from the round's beginning; one
    /// at a time takes seven, and a group is never empty nor larger than there are views.
    #[test]
    fn groups_are_cut_from_the_rounds_order() {
        let of = |count| Batches::new(BatchRule::Views(count), &sensors(7), (0..7).collect(), 4).expect("valid");
        let (whole, fours, ones) = (of(7), of(4), of(1));
        for round in 0..3 {
            let order = whole.at(round).table.sensors;
            assert_eq!(fours.at(2 * round).table.sensors, order[..4]);
            let second = [&order[4..], &order[..1]].concat();
            assert_eq!(fours.at(2 * round + 1).table.sensors, second);
            let one_by_one: Vec<u32> = (0..7).flat_map(|i| ones.at(7 * round + i).table.sensors).collect();
            assert_eq!(one_by_one, order);
        }
        assert_eq!(
            (of(0).at(0).table.sensors.len(), of(99).at(0).table.sensors.len()),
            (1, 7)
        );
        // The largest views have 10 · 3, 9 · 3 and 8 · 3 pixels.
        assert_eq!([of(1), of(3)].map(|b| b.largest().pixels()), [30, 81]);
    }

    #[test]
    fn refusals_say_what_to_do() {
        let mut huge = sensors(2);
        huge.iter_mut()
            .for_each(|sensor| (sensor.width, sensor.height) = (1 << 16, 1 << 15));
        let refusal = |rule, training| Batches::new(rule, &huge, training, 0).expect_err("refused");
        assert_eq!(
            refusal(BatchRule::AllViews, vec![]),
            "there is no view to learn from: every sensor is held out or has no reference"
        );
        assert_eq!(
            refusal(BatchRule::Rays(5), vec![0, 1]),
            "the training views together have more than 2³² pixels; take `views` as the batch, or downscale"
        );
        assert_eq!(
            refusal(BatchRule::Views(2), vec![0, 1]),
            "2 views have more than 2³² pixels; take fewer an iteration"
        );
    }
}
