//! Which GPUs a word of the user or of `CUDA_VISIBLE_DEVICES` names. Pure; does not call the driver.

use crate::sample::GpuInstance;

/// Whether `word` is this GPU's index, its UUID or the start of the UUID. `None` = not known without the UUID.
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

/// Returns true if one answer is true, false if all are false, else `None`.
pub(super) fn any(answers: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let answers: Vec<_> = answers.collect();
    if answers.contains(&Some(true)) {
        Some(true)
    } else if answers.contains(&None) {
        None
    } else {
        Some(false)
    }
}

/// The properties by which a GPU can be named.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named<'a> {
    /// In PCI bus order.
    pub(super) index: u32,
    pub(super) uuid: Option<&'a str>,
    /// Its model: CUDA orders GPUs of several models by speed.
    pub(super) model: Option<&'a str>,
    pub(super) instances: &'a [GpuInstance],
}

/// The GPUs that a process may use.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Visible {
    /// By position among the GPUs; `None` if it cannot be known.
    pub(super) answers: Vec<Option<bool>>,
    /// The positions of the same GPUs in the order in which CUDA numbers them for the process. Empty if that cannot be
    /// known.
    pub(super) order: Vec<usize>,
    /// The instance of a divided GPU that the process was given: position of the GPU, number of the GPU instance.
    pub(super) instance: Option<(usize, u32)>,
}

/// Returns which of `gpus` a process with `CUDA_VISIBLE_DEVICES` = `value` may use; `None` = not set, so all. An answer
/// is `None` if it cannot be known: for a MIG id of an instance that is not seen, or if a UUID that matters is not
/// known.
///
/// CUDA's rules: the list consists of numbers, or of UUIDs and starts of UUIDs that match only one GPU. The first entry
/// that names no GPU ends the list. A GPU that is named twice voids it. Of MIG ids only the first counts.
///
/// Numbers are in PCI bus order if `by_bus` (the process set `CUDA_DEVICE_ORDER=PCI_BUS_ID`) or if all GPUs are of one
/// model. Otherwise CUDA puts the fastest first, and which one that is cannot be known here.
pub(super) fn visible(gpus: &[Named<'_>], value: Option<&str>, by_bus: bool) -> Visible {
    let alike = gpus.windows(2).all(|pair| pair[0].model == pair[1].model);
    let numbered = by_bus || alike;
    let Some(value) = value.map(str::trim_start) else {
        return Visible {
            answers: vec![Some(true); gpus.len()],
            order: (0..gpus.len()).filter(|_| numbered).collect(),
            instance: None,
        };
    };
    if value.starts_with("MIG-") {
        return visible_part(gpus, value.split(',').next().unwrap_or_default());
    }
    let by_uuid = value.starts_with("GPU-");
    let mut order = Vec::new();
    for word in value.split(',') {
        let fits = |gpu: &Named<'_>| {
            if by_uuid {
                let begins =
                    |uuid: &str| word.starts_with("GPU-") && uuid.starts_with(word.trim_end());
                gpu.uuid.map(begins)
            } else {
                let number = ordinal(word);
                let exists = number.is_some_and(|number| (number as usize) < gpus.len());
                (numbered || !exists).then_some(number == Some(gpu.index))
            }
        };
        let answers: Vec<_> = gpus.iter().map(fits).collect();
        if answers.contains(&None) {
            let sure = |place| order.contains(&place).then_some(true);
            return Visible {
                answers: (0..gpus.len()).map(sure).collect(),
                ..Visible::default()
            };
        }
        let mut places = (0..gpus.len()).filter(|&place| answers[place] == Some(true));
        let (Some(place), None) = (places.next(), places.next()) else {
            break;
        };
        if order.contains(&place) {
            order.clear();
            break;
        }
        order.push(place);
    }
    Visible {
        answers: (0..gpus.len())
            .map(|place| Some(order.contains(&place)))
            .collect(),
        order,
        instance: None,
    }
}

/// Like [`visible`], for the id of an instance: `MIG-<uuid>`, or `MIG-GPU-<uuid>/<gpu instance>/<compute instance>`
/// before driver 470.
fn visible_part(gpus: &[Named<'_>], id: &str) -> Visible {
    let id = id.trim_end();
    let alone = |place: usize, instance: Option<u32>| Visible {
        answers: (0..gpus.len()).map(|other| Some(other == place)).collect(),
        order: vec![place],
        instance: instance.map(|instance| (place, instance)),
    };
    let unknown = || Visible {
        answers: vec![None; gpus.len()],
        ..Visible::default()
    };
    if let Some(old) = id.strip_prefix("MIG-").filter(|id| id.starts_with("GPU-")) {
        let mut parts = old.split('/');
        let parent = parts.next();
        let instance = parts.next().and_then(|number| number.parse().ok());
        let place = gpus.iter().position(|gpu| gpu.uuid == parent);
        return place.map_or_else(unknown, |place| alone(place, instance));
    }
    let part = |gpu: &Named<'_>| {
        let named = |part: &&GpuInstance| part.uuid.as_deref() == Some(id);
        gpu.instances
            .iter()
            .find(named)
            .map(|part| part.gpu_instance)
    };
    let mut found = gpus.iter().enumerate();
    found
        .find_map(|(place, gpu)| Some(alone(place, part(gpu)?)))
        .unwrap_or_else(unknown)
}

/// Parses a number as CUDA does, with C's `strtoul`: leading blanks, a `+`, and anything after the number is ignored.
fn ordinal(word: &str) -> Option<u32> {
    let word = word.trim_start();
    let word = word.strip_prefix('+').unwrap_or(word);
    let end = word.find(|c: char| !c.is_ascii_digit());
    word[..end.unwrap_or(word.len())].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn gpu(index: u32, uuid: &'static str) -> Named<'static> {
        Named {
            index,
            uuid: Some(uuid),
            model: None,
            instances: &[],
        }
    }

    const GPUS: [Named<'static>; 3] = [gpu(0, "GPU-11aa"), gpu(1, "GPU-11bb"), gpu(2, "GPU-22cc")];

    fn order(value: &str) -> Vec<usize> {
        let found = visible(&GPUS, Some(value), false);
        let seen = (0..3).map(|place| Some(found.order.contains(&place)));
        assert_eq!(found.answers, seen.collect::<Vec<_>>(), "{value}");
        found.order
    }

    #[test]
    fn follows_the_rules_of_cuda() {
        let all = visible(&GPUS, None, false);
        assert_eq!(
            (all.answers, all.order),
            (vec![Some(true); 3], vec![0, 1, 2])
        );
        for (value, seen) in [
            ("", &[][..]),
            ("0", &[0]),
            ("2,0", &[2, 0]),
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
            ("GPU-22,GPU-11b", &[2, 1]),
            ("GPU-22,GPU-11,GPU-11b", &[2]),
            ("GPU-22,GPU-22cc", &[]),
            ("GPU-22,0", &[2]),
            ("0,GPU-22", &[0]),
            ("MIG-GPU-11bb/1/0", &[1]),
        ] {
            assert_eq!(order(value), seen, "{value}");
        }
    }

    #[test]
    fn unknown_is_not_false() {
        let answers = |gpus: &[Named<'_>], value| visible(gpus, Some(value), false).answers;
        assert_eq!(answers(&GPUS, "MIG-5ac7"), [None; 3]);
        let silent = Named {
            uuid: None,
            ..gpu(1, "")
        };
        let gpus = [gpu(0, "GPU-11aa"), silent];
        assert_eq!(answers(&gpus, "GPU-11"), [None; 2]);
        assert_eq!(answers(&gpus, "1"), [Some(false), Some(true)]);
        assert_eq!(named("GPU-1", 1, None), None);
        assert_eq!(named("", 0, Some("GPU-1")), Some(false));
    }

    #[test]
    fn numbers_among_several_models_are_known_by_the_bus_alone() {
        let of = |index, model| Named {
            model: Some(model),
            ..gpu(index, "GPU-1")
        };
        let gpus = [of(0, "T4"), of(1, "H200")];
        let numbered = visible(&gpus, Some("0"), false);
        assert_eq!((numbered.answers, numbered.order), (vec![None; 2], vec![]));
        assert_eq!(visible(&gpus, Some("0"), true).order, [0]);
        assert_eq!(visible(&gpus, Some("7"), false).answers, [Some(false); 2]);
        let all = visible(&gpus, None, false);
        assert_eq!((all.answers, all.order), (vec![Some(true); 2], vec![]));
    }

    #[test]
    fn a_part_is_known_by_its_own_uuid() {
        let parts = [GpuInstance {
            uuid: Some("MIG-5ac7".to_owned()),
            gpu_instance: Some(9),
            ..GpuInstance::default()
        }];
        let divided = Named {
            instances: &parts,
            ..gpu(1, "GPU-11bb")
        };
        let found = visible(&[GPUS[0], divided], Some("MIG-5ac7,MIG-1"), false);
        assert_eq!(found.answers, [Some(false), Some(true)]);
        assert_eq!(found.instance, Some((1, 9)));
        let old = visible(&GPUS, Some("MIG-GPU-22cc/3/0"), false);
        assert_eq!(old.instance, Some((2, 3)));
    }
}
