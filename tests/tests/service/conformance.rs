//! What the original suites ask that the types of the contract cannot say, said on the wire by a client that
//! can say anything; and answers on the wire that whoever else writes a client relies on.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;

use burst_driver::{CacheKey, CpuDevice};
use burst_hal::validate::RequestRules;
use burst_hal::versions::{AdaptedDevice, LimitedDevice, OldDevice};
use burst_hal::{
    CacheFiles, Device, ErrorStatus, ExecutionPreference, HalVersion, PrepareOptions, Priority,
};
use burst_server::ServiceOptions;
use burst_wire::control::{
    Answer, CachePlace, Call, ClientMessage, Reply, ServerMessage, WirePrepareOptions, encode,
};
use burst_wire::{longest_packet, socket};

use crate::burst_support::raw::{RawClient, connect, parcel};
use crate::burst_support::{Private, model};
use crate::service_support::Shared;

/// `ValidationTest`, executionPreference and executionPriority.
#[test]
fn a_preference_or_priority_that_is_not_there_is_refused_and_the_client_goes_on() {
    let (_service, socket) = Private::start(ServiceOptions::default());
    let mut client = RawClient::greet(socket);
    let (body, memory) = parcel(&model());
    let message = |options: PrepareOptions| {
        let options = WirePrepareOptions::from(&options);
        let call = Call::Prepare { device: 0, model: body.clone(), options };
        encode(&ClientMessage::Call { id: 5, call }).unwrap()
    };
    let plain = PrepareOptions::default();
    let low = PrepareOptions { preference: ExecutionPreference::LowPower, ..plain };
    let high = PrepareOptions { priority: Priority::High, ..plain };
    let right = message(plain);
    for (what, other) in [("preference", message(low)), ("priority", message(high))] {
        // Where the two differ, its number lies: 32 bits, the lowest first.
        let at = right.iter().zip(&other).position(|(one, other)| one != other).unwrap();
        for code in [-1_i32, 3, 99, i32::MIN, i32::MAX] {
            let mut wrong = right.clone();
            wrong[at..at + 4].copy_from_slice(&code.to_le_bytes());
            socket::send(&client.socket, &wrong, &[memory.as_fd()]).unwrap();
            let ServerMessage::Reply(Reply { id: 5, outcome: Err(refusal) }) = client.receive().0
            else {
                panic!("{what} {code} is taken")
            };
            assert_eq!(refusal.status(), ErrorStatus::InvalidArgument, "{what} {code}");
            let detail = refusal.detail.as_str();
            assert!(detail.contains(what) && detail.contains(&code.to_string()), "{detail}");
        }
    }
    client.prepare(&model());
}

/// A driver of an older version is one to the clients of a service too.
#[test]
fn a_client_knows_the_version_of_the_hal_that_a_device_has_all_of() {
    for version in HalVersion::ALL {
        let cpu: Arc<dyn Device> = Arc::new(CpuDevice::default());
        let limited = LimitedDevice::new(Arc::clone(&cpu));
        let device: Arc<dyn Device> = match version {
            HalVersion::V1_0 => Arc::new(AdaptedDevice::new(OldDevice::V1_0(Arc::new(limited)))),
            HalVersion::V1_1 => Arc::new(AdaptedDevice::new(OldDevice::V1_1(Arc::new(limited)))),
            HalVersion::V1_2 => Arc::new(AdaptedDevice::new(OldDevice::V1_2(Arc::new(limited)))),
            HalVersion::V1_3 => cpu,
        };
        let service = Shared::start(device, ServiceOptions::default());
        let remote = service.connect().unwrap().devices().unwrap().remove(0);
        assert_eq!(remote.hal_version(), version);
    }
}

/// A compilation in files: their places for a message, and descriptors of them.
fn kept(folder: &std::path::Path, files: CacheFiles) -> Vec<File> {
    let open = |number| {
        let path = folder.join(format!("{number}"));
        File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap()
    };
    (0..files.model + files.data).map(open).collect()
}

/// What a model that was kept is like, only the service can say: its answer is what its own client computes
/// of the model.
#[test]
fn a_restored_model_comes_with_the_counts_and_the_longest_packet_of_the_one_that_was_kept() {
    let device = CpuDevice::default().with_cache_key(CacheKey::new([5; CacheKey::BYTES]));
    let files = device.cache_files_needed();
    let service = Shared::start(Arc::new(device), ServiceOptions::default());
    let mut client = RawClient::greet(connect(&service.path));
    for count in [1, 3] {
        let folder = tempfile::tempdir().unwrap();
        let model = crate::burst_support::wide_model(count);
        let (body, memory) = parcel(&model);
        let cache = CachePlace::new([7; 32], files);
        let options = WirePrepareOptions::from(&PrepareOptions::default());
        let call = Call::PrepareCaching { device: 0, model: body, options, cache };
        let opened = kept(folder.path(), files);
        let mut descriptors = vec![memory.as_fd()];
        descriptors.extend(opened.iter().map(AsFd::as_fd));
        let prepared = client.call(call, &descriptors);
        assert!(matches!(prepared, Ok(Answer::Prepared { .. })), "{prepared:?}");
        let restore = Call::PrepareFromCache { device: 0, cache, deadline: None };
        let opened = kept(folder.path(), files);
        let descriptors: Vec<_> = opened.iter().map(AsFd::as_fd).collect();
        let restored = client.call(restore.clone(), &descriptors);
        let longest = u32::try_from(longest_packet(&RequestRules::new(&model).unwrap())).unwrap();
        // Five of the packet itself; of an argument its own, its memory's, and two dimensions.
        assert_eq!(longest, 5 + 2 * count * (2 + 2));
        match restored {
            Ok(Answer::Restored { inputs, outputs, longest_packet, .. }) => {
                assert_eq!((inputs, outputs, longest_packet), (count, count, longest));
            }
            other => panic!("{other:?}"),
        }
        // A descriptor for each file, no more and no fewer.
        let few = client.call(restore.clone(), &descriptors[..1]).unwrap_err();
        assert_eq!(few.status(), ErrorStatus::InvalidArgument, "{}", few.detail.as_str());
        let many = [descriptors.as_slice(), &[memory.as_fd()]].concat();
        let many = client.call(restore, &many).unwrap_err();
        assert_eq!(many.status(), ErrorStatus::InvalidArgument, "{}", many.detail.as_str());
    }
}
