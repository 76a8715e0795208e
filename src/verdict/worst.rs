//! Chooses the rank that the verdict is about.

use super::busy_time::dispatched;
use super::device::time_in_collectives;
use super::level::{MODERATE, SLIGHT};
use crate::model::rates::{JobRates, RankRates};
use crate::units::ProcessKey;

/// Share of time that a rank must lose more than the present one to replace it.
const CLEARLY: f64 = 0.05;

/// Returns the rank that loses most: by its waits for data; if no rank has noticeable ones, by its waits for the other
/// ranks. If neither is known, returns the first. The present rank, `named`, stays until another loses clearly more.
/// Ranks that get their batches from another are left out if some rank waits for its own.
pub(super) fn worst_rank(job: &JobRates, named: Option<ProcessKey>) -> Option<&RankRates> {
    let share = |rank: &RankRates| rank.wait.map_or(-1.0, |wait| wait.share.0);
    let fed = job.ranks.iter().all(|rank| share(rank) < SLIGHT);
    let lost = |rank: &RankRates| match time_in_collectives(job, rank) {
        with_others if fed && with_others.0 >= SLIGHT => 1.0 + with_others.0,
        _ => share(rank),
    };
    let reads = |rank: &RankRates| dispatched(rank).is_none() && share(rank) >= MODERATE;
    let yields = job.ranks.iter().any(reads);
    let judged = |rank: &&RankRates| !yields || dispatched(rank).is_none();
    // `max_by` returns the last of equals: in reverse order, that is the lowest rank.
    let worst = job
        .ranks
        .iter()
        .rev()
        .filter(judged)
        .max_by(|one, other| lost(one).total_cmp(&lost(other)))?;
    let mut ranks = job.ranks.iter().filter(judged);
    let named = ranks.find(|rank| Some(rank.key) == named);
    let stays = named.filter(|named| lost(worst) < lost(named) + CLEARLY);
    stays.or(Some(worst))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::between;
    use crate::model::literals::{key, training};
    use crate::units::Share;

    /// Returns a job of two ranks that wait for these shares of the time.
    fn job(waits: [f64; 2]) -> JobRates {
        let mut job = between(&training(4.0), &training(6.0))
            .unwrap()
            .job
            .unwrap();
        let mut other = job.ranks[0].clone();
        other.key = key(101);
        job.ranks.push(other);
        for (rank, share) in job.ranks.iter_mut().zip(waits) {
            rank.wait.as_mut().unwrap().share = Share(share);
        }
        job
    }

    #[test]
    fn of_two_similar_ranks_the_named_one_stays() {
        let named = |waits, before| worst_rank(&job(waits), before).unwrap().key;
        let [one, other] = [key(100), key(101)];
        assert_eq!(named([0.61, 0.60], None), one);
        assert_eq!(named([0.60, 0.63], None), other);
        assert_eq!(named([0.60, 0.63], Some(one)), one);
        assert_eq!(named([0.60, 0.70], Some(one)), other);
        // The named rank is gone.
        assert_eq!(named([0.60, 0.63], Some(key(99))), other);
    }

    #[test]
    fn dispatched_rank_is_not_chosen() {
        let [reads, gets] = [key(100), key(101)];
        let named = |waits: [f64; 2], before| {
            let mut job = job(waits);
            job.ranks[1].dispatched = Some(Share(0.9 * waits[1]));
            worst_rank(&job, before).unwrap().key
        };
        assert_eq!(named([0.45, 0.60], None), reads);
        assert_eq!(named([0.45, 0.60], Some(gets)), reads);
        // The rank that reads almost never waits, so its waits do not explain the other's.
        assert_eq!(named([0.02, 0.60], None), gets);
    }
}
