//! Which GPUs a word of the user or of `CUDA_VISIBLE_DEVICES` names. Pure; knows no driver.

/// Whether `word` is this GPU's index, its UUID or the start of it. `None` = its UUID would tell.
pub(super) fn named(word: &str, index: u32, uuid: Option<&str>) -> Option<bool> {
    let word = word.trim();
    if word.is_empty() {
        return Some(false);
    }
    match word.parse::<u32>() {
        Ok(number) => Some(number == index),
        Err(_) => uuid.map(|uuid| uuid.starts_with(word)),
    }
}

/// Which of `gpus` (index in PCI bus order, UUID) a job may use whose `CUDA_VISIBLE_DEVICES` is
/// `value`; `None` there = not set, so all. An answer is `None` where it cannot be known: behind a
/// MIG id of the newer kind (it does not name its GPU), or where a UUID in question is not known.
///
/// CUDA's rules: the list is of numbers, or of UUIDs and starts of UUIDs that fit one GPU alone; the
/// first entry that names no GPU ends it; a GPU named twice voids it; of MIG ids the first counts.
///
/// Numbers are taken in PCI bus order. CUDA counts the fastest GPU first unless the job sets
/// `CUDA_DEVICE_ORDER=PCI_BUS_ID`; the two differ only where the GPUs do.
pub fn visible(gpus: &[(u32, Option<&str>)], value: Option<&str>) -> Vec<Option<bool>> {
    let Some(value) = value.map(str::trim_start) else {
        return vec![Some(true); gpus.len()];
    };
    if let Some(instance) = value.strip_prefix("MIG-") {
        // `MIG-GPU-<uuid>/<gpu instance>/<compute instance>` before driver 470.
        let parent = instance.split(['/', ',']).next().unwrap_or_default();
        let old = parent.starts_with("GPU-");
        let is_parent = |uuid: &str| uuid == parent;
        let known = |&(_, uuid): &(u32, Option<&str>)| uuid.filter(|_| old).map(is_parent);
        return gpus.iter().map(known).collect();
    }
    let by_uuid = value.starts_with("GPU-");
    let mut seen = vec![false; gpus.len()];
    for word in value.split(',') {
        let fits = |&(index, uuid): &(u32, Option<&str>)| {
            if by_uuid {
                uuid.map(|uuid| word.starts_with("GPU-") && uuid.starts_with(word.trim_end()))
            } else {
                Some(ordinal(word) == Some(index))
            }
        };
        let answers: Vec<_> = gpus.iter().map(fits).collect();
        if answers.contains(&None) {
            let answer = |&seen: &bool| seen.then_some(true);
            return seen.iter().map(answer).collect();
        }
        let mut places = (0..gpus.len()).filter(|&place| answers[place] == Some(true));
        let (Some(place), None) = (places.next(), places.next()) else {
            break;
        };
        if std::mem::replace(&mut seen[place], true) {
            return vec![Some(false); gpus.len()];
        }
    }
    seen.into_iter().map(Some).collect()
}

/// CUDA reads a number as C's `strtoul` does: blanks before it, a `+`, and what follows it is let be.
fn ordinal(word: &str) -> Option<u32> {
    let word = word.trim_start();
    let word = word.strip_prefix('+').unwrap_or(word);
    let end = word.find(|c: char| !c.is_ascii_digit());
    word[..end.unwrap_or(word.len())].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPUS: [(u32, Option<&str>); 3] = [
        (0, Some("GPU-11aa")),
        (1, Some("GPU-11bb")),
        (2, Some("GPU-22cc")),
    ];

    fn indices(value: &str) -> Vec<usize> {
        let answers = visible(&GPUS, Some(value));
        assert!(answers.iter().all(Option::is_some), "{answers:?}");
        (0..3).filter(|i| answers[*i] == Some(true)).collect()
    }

    #[test]
    fn follows_the_rules_of_cuda() {
        assert_eq!(visible(&GPUS, None), [Some(true); 3]);
        for (value, seen) in [
            ("", &[][..]),
            ("0", &[0]),
            ("2,0", &[0, 2]),
            (" 1 , 2", &[1, 2]),
            ("1gpu2,2ampere", &[1, 2]),
            ("+1", &[1]),
            ("0,9,1", &[0]),
            ("-1,0", &[]),
            ("NoDevFiles", &[]),
            ("1,1", &[]),
            ("99999999999", &[]),
            ("GPU-11bb", &[1]),
            ("GPU-2", &[2]),
            ("GPU-11", &[]),
            ("GPU-22,GPU-11b", &[1, 2]),
            ("GPU-22,GPU-11,GPU-11b", &[2]),
            ("GPU-22,GPU-22cc", &[]),
            ("GPU-22,0", &[2]),
            ("0,GPU-22", &[0]),
            ("MIG-GPU-11bb/1/0", &[1]),
        ] {
            assert_eq!(indices(value), seen, "{value}");
        }
    }

    #[test]
    fn what_cannot_be_known_is_not_a_no() {
        assert_eq!(visible(&GPUS, Some("MIG-5ac7")), [None; 3]);
        let gpus = [(0, Some("GPU-11aa")), (1, None)];
        assert_eq!(visible(&gpus, Some("GPU-11")), [None; 2]);
        assert_eq!(visible(&gpus, Some("1")), [Some(false), Some(true)]);
        assert_eq!(named("GPU-1", 1, None), None);
        assert_eq!(named("", 0, Some("GPU-1")), Some(false));
    }
}
