//! What is mapped for a client is what it said, not what its files could hold.

use burst_tests::attacks::{Attack, Honest, SPARSE_MEMORIES, SPARSE_QUEUES};

use crate::beside::{LONGEST, Scene};

burst_testing::tests![
    memories_that_are_larger_than_stated_do_not_use_up_the_address_space(),
    queues_in_memories_that_are_larger_do_not_either(),
];

/// What the service may map in all. Its threads have stacks and heaps of 64 MiB set aside for them, so
/// that some GiB mean nothing; the files of the attack span 128 TiB.
const MAPPED_MAX: u64 = 512 << 30;

fn memories_that_are_larger_than_stated_do_not_use_up_the_address_space() {
    maps_what_is_stated(&SPARSE_MEMORIES);
}

fn queues_in_memories_that_are_larger_do_not_either() {
    maps_what_is_stated(&SPARSE_QUEUES);
}

fn maps_what_is_stated(attack: &Attack) {
    let mut scene = Scene::begin(attack);
    scene.is_served();
    let mapped = scene.service.size("VmSize").expect("the service lives");
    println!("{}: {} GiB mapped", attack.name, mapped >> 30);
    assert!(mapped < MAPPED_MAX, "{mapped} bytes mapped");
    let newcomer = Honest::connect_again_and_again(scene.service.socket());
    let report =
        newcomer.and_then(|mut newcomer| newcomer.report(20, std::time::Duration::from_secs(20)));
    scene.service_lives();
    report.and_then(|report| report.check(20, LONGEST)).expect("new clients are served");
}
