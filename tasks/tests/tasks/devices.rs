//! One task, whatever runs its model.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use burst_client::{Client, StreamOptions};
use burst_driver::CpuDevice;
use burst_server::{Service, ServiceOptions};
use burst_tasks::{Class, ImageClassifier, Outputs, Runner, SessionRunner, TaskError};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::{frames, named, shapes};

/// A client of a service that offers the CPU, over a socket pair.
fn service() -> (Client, JoinHandle<()>) {
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    let service = Service::new(vec![Arc::new(CpuDevice::default())], ServiceOptions::default());
    let thread = std::thread::spawn(move || service.serve_socket(theirs).unwrap());
    (Client::from_socket(ours).unwrap(), thread)
}

/// What a classifier says of the camera.
fn said<R: Runner>(mut classifier: ImageClassifier<R>) -> Vec<Vec<Class>> {
    let look = |(picture, class): &(burst_tasks::Picture, usize)| {
        let found = classifier.classify(picture.view().unwrap()).unwrap();
        assert_eq!((found.len(), found[0].index), (10, *class));
        assert_eq!(found[0].name(), burst_camera::LABELS[*class]);
        assert!(found.is_sorted_by(|a, b| a.score >= b.score));
        found
    };
    frames(12).iter().map(look).collect()
}

#[test]
fn every_way_to_a_device_gives_the_same_answers() {
    let (model, options) = (shapes(), named());
    let here = CpuDevice::default();
    let want = said(ImageClassifier::new(&here, &model, &options).unwrap());
    let (client, service) = service();
    let device = client.device("cpu").unwrap();
    let there = ImageClassifier::new(&device, &model, &options).unwrap();
    assert_eq!(said(there), want);
    let stream = device.stream(&model.imported.model, &StreamOptions::default()).unwrap();
    let streamed = ImageClassifier::over(stream, &model, &options).unwrap();
    assert!(streamed.runner().is_alive());
    assert_eq!(said(streamed), want);
    drop((device, client));
    service.join().unwrap();
}

#[test]
fn a_service_that_is_gone_is_an_error_of_the_task() {
    let (client, service) = service();
    let device = client.device("cpu").unwrap();
    let stream = device.stream(&shapes().imported.model, &StreamOptions::default()).unwrap();
    let mut classifier = ImageClassifier::over(stream, &shapes(), &named()).unwrap();
    device.hang_up();
    let (picture, _) = &frames(1)[0];
    let error = classifier.classify(picture.view().unwrap()).unwrap_err();
    assert!(matches!(error, TaskError::Client(_)), "{error}");
    drop((classifier, device, client));
    service.join().unwrap();
}

#[test]
fn inputs_and_outputs_that_are_not_there_are_no_panic() {
    let mut runner = SessionRunner::open(&CpuDevice::default(), &shapes().imported).unwrap();
    assert!(runner.input(1).is_empty());
    runner.run(Duration::from_secs(60)).unwrap();
    assert!(runner.output(0).is_ok());
    assert!(matches!(runner.output(1), Err(TaskError::OutputLength { index: 1, .. })));
}
