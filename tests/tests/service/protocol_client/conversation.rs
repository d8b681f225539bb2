//! What the page promises, one conversation per test.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;

use burst_shm::{Mapping, Memory};

use super::bytes::{Reader, Writer};
use super::client::*;
use super::connection::{Connection, DESCRIPTORS_MAX, MESSAGE_MAX, Notice};
use super::model;
use super::packet::{Answer, request};
use super::queue::{DATUM, NOT_EMPTY, Queue};

#[test]
fn a_client_from_the_page_greets_and_asks_for_devices() {
    let service = Service::start("page-devices");
    let mut connection = Connection::open(&service.path());
    let greeting = connection.enter(FEATURES | 1 << 40);
    assert_eq!((greeting.features, greeting.pid), (FEATURES, service.child.id()));
    assert!(!greeting.name.is_empty() && greeting.missing == 0 && greeting.detail.is_empty());
    let limit = |number| greeting.limits.iter().find(|(one, _)| *one == number).map(|one| one.1);
    assert_eq!((limit(1), limit(2)), (Some(MESSAGE_MAX as u64), Some(DESCRIPTORS_MAX as u64)));
    assert_eq!((limit(3), limit(10), limit(11)), (Some(4), Some(65_536), Some(64)));
    assert!((4..14).all(|number| limit(number).is_some()), "{:?}", greeting.limits);

    let received = connection.call(LIST_DEVICES, Writer::default(), &[]).unwrap();
    let mut from = Reader(&received.bytes);
    assert_eq!((from.u32(), from.list(Reader::text)), (1, vec!["cpu".to_owned()]));

    let received = connection.call(DEVICE_INFO, Writer::default().u32(0), &[]).unwrap();
    let mut from = Reader(&received.bytes);
    assert_eq!((from.u32(), from.text()), (2, "cpu".to_owned()));
    assert!(!from.text().is_empty(), "a version");
    assert_eq!(from.i32(), 2, "a CPU");
    let figure = |from: &mut Reader<'_>| [from.f32(), from.f32()];
    let relaxed = [figure(&mut from), figure(&mut from)];
    let types: Vec<(i32, [f32; 2])> = from.list(|from| (from.i32(), figure(from)));
    let control_flow = [figure(&mut from), figure(&mut from)];
    assert!(types.iter().any(|(ty, _)| *ty == 3), "TENSOR_FLOAT32");
    let figures = types.iter().map(|(_, figure)| figure).chain(&relaxed).chain(&control_flow);
    assert!(figures.flatten().all(|figure| *figure > 0.0));
    let extensions = from.list(|from| {
        let name = from.text();
        (name, from.list(|from| (from.u16(), from.bool(), from.u32())))
    });
    assert!(extensions.is_empty());
    assert_eq!([from.u32(), from.u32()], [0, 0], "no cache files");

    let received = connection.call(DEVICE_STATUS, Writer::default().u32(0), &[]).unwrap();
    let mut from = Reader(&received.bytes);
    assert_eq!((from.u32(), from.i32()), (3, 0));

    let body = model::body(true);
    let supported = Writer::default().u32(0).raw(&body.fields.0);
    let received = connection.call(SUPPORTED_OPERATIONS, supported, &[body.memory.as_fd()]);
    let mut from = Reader(&received.as_ref().unwrap().bytes);
    assert_eq!((from.u32(), from.list(Reader::bool)), (4, vec![true]));
}

#[test]
fn it_is_refused_with_the_codes_of_the_page() {
    let service = Service::start("page-refusals");
    let mut client = Client::new(&service.path());
    let new = Writer::default;
    let prepare = |body: &model::Body| {
        let options = new().i32(1).i32(1).optional_u64(None);
        new().u32(0).raw(&body.fields.0).record(&options)
    };
    // One that is not sealed is not even looked at; a SQRT of three operands is not legal.
    for body in [model::body(false), model::body_of(88, true)] {
        let fields = prepare(&body);
        let status = client.connection.refused(PREPARE, fields, &[body.memory.as_fd()]);
        assert_eq!(status, INVALID_ARGUMENT);
    }
    let (memory, socket) =
        (client.inputs.try_clone().unwrap(), client.connection.socket.try_clone().unwrap());
    let token = client.execute(&request([0; 2]), &[token(1), shared(OUTPUTS)]);
    let mut short = request([0; 2]);
    short.inputs[1].3 = 4;
    let mut left_out = request([0; 2]);
    left_out.inputs.pop();
    let cases: [(u32, Writer, &[BorrowedFd<'_>]); 13] = [
        (DEVICE_STATUS, new().u32(1), &[]),
        (DEVICE_STATUS, new().u32(0), &[memory.as_fd()]),
        (RELEASE_MODEL, new().u32(12_345), &[]),
        (SHARE_MEMORY, new().u32(INPUTS).u64(1), &[memory.as_fd()]),
        (SHARE_MEMORY, new().u32(1).u64(65), &[memory.as_fd()]),
        (SHARE_MEMORY, new().u32(1).u64(1), &[]),
        (SHARE_MEMORY, new().u32(1).u64(1), &[socket.as_fd()]),
        (PUSH_MEMORY, new().u32(99).i32(0).raw(&shared(INPUTS).0), &[]),
        (CLOSE_BURST, new().u32(99), &[]),
        (FREE_MEMORY, new().u32(99).i32(0), &[]),
        (EXECUTE, token, &[]),
        (EXECUTE, client.execute(&short, &both()), &[]),
        (EXECUTE, client.execute(&left_out, &both()), &[]),
    ];
    for (index, (variant, fields, fds)) in cases.into_iter().enumerate() {
        let status = client.connection.refused(variant, fields, fds);
        assert_eq!(status, INVALID_ARGUMENT, "case {index}");
    }
    let mut late = request([0; 2]);
    late.deadline = Some(1);
    let late = client.execute(&late, &both());
    assert_eq!(client.connection.refused(EXECUTE, late, &[]), MISSED_DEADLINE_PERSISTENT);
    let endless = new().u32(1).u64(1 << 40);
    let status = client.connection.refused(ALLOCATE_MEMORY, endless, &[]);
    assert_eq!(status, RESOURCE_EXHAUSTED_PERSISTENT);
    client.connection.done(FORGET_MEMORY, new().u32(77), &[]);
}

#[test]
fn it_is_refused_bursts_that_cannot_be() {
    let service = Service::start("page-bursts");
    let mut client = Client::new(&service.path());
    let (requests, results, tiny) = (Queue::new(16), Queue::new(16), Queue::new(1));
    let fds = [requests.descriptor(), results.descriptor()];
    for (results, features, depth, status) in [
        (&results, 0, 2, INVALID_ARGUMENT),
        (&results, 0, 0, INVALID_ARGUMENT),
        (&results, 1 << 20, 1, INVALID_ARGUMENT),
        (&results, FEATURES, 65, RESOURCE_EXHAUSTED_PERSISTENT),
        (&tiny, 0, 1, GENERAL_FAILURE),
    ] {
        let fds = [fds[0], results.descriptor()];
        let call = configure(client.model, &requests, results, features, SLEEP, depth);
        assert_eq!(client.connection.refused(CONFIGURE_BURST, call, &fds), status);
    }
    let unknown = configure(client.model + 1, &requests, &results, 0, SLEEP, 1);
    assert_eq!(client.connection.refused(CONFIGURE_BURST, unknown, &fds), INVALID_ARGUMENT);
}

#[test]
fn it_executes_over_the_socket() {
    let service = Service::start("page-socket");
    let mut client = Client::new(&service.path());
    client.put([1.0, 2.0, 10.0, 20.0]);
    let call = client.execute(&request([0; 2]), &both());
    let (answer, nanos) = executed(&client.connection.call(EXECUTE, call, &[]).unwrap());
    assert_eq!((answer, nanos), (success(None), None));
    assert_eq!(client.sums(), [11.0, 22.0]);

    // Measured, with a deadline that holds, and a memory that comes with the message.
    client.put([1.5, 2.0, 10.0, -20.0]);
    let mut measured = request([0; 2]);
    measured.measure = 1;
    measured.deadline = Some(now() + 60_000_000_000);
    measured.loop_timeout = Some(1_000_000_000);
    let sources = [descriptor(POOL_BYTES), shared(OUTPUTS)];
    let call = client.execute(&measured, &sources);
    let memory = client.inputs.try_clone().unwrap();
    let received = client.connection.call(EXECUTE, call, &[memory.as_fd()]).unwrap();
    let (answer, nanos) = executed(&received);
    assert_eq!((answer.status, answer.shapes), (0, vec![(true, vec![2])]));
    assert!(answer.micros[1] < 60_000_000 && nanos.unwrap() / 1000 >= answer.micros[1]);
    assert_eq!(client.sums(), [11.5, -18.0]);

    // Too little room is an answer, not a refusal.
    let mut small = request([0; 2]);
    small.outputs[0].3 = 4;
    let call = client.execute(&small, &both());
    let (answer, _) = executed(&client.connection.call(EXECUTE, call, &[]).unwrap());
    let shapes = vec![(false, vec![2])];
    assert_eq!(answer, Answer { shapes, ..failure(OUTPUT_INSUFFICIENT_SIZE) });
}

#[test]
fn it_runs_a_burst_of_plain_hal_1_2_with_both_ends_asleep_in_between() {
    let service = Service::start("page-plain");
    let mut client = Client::new(&service.path());
    let mut burst = Burst::new(&mut client, 0, SLEEP, 1, 21);
    burst.push_both(&mut client);
    let packet = request([INPUT_SLOT, OUTPUT_SLOT]).encode();
    assert_eq!(packet.len(), 8 * DATUM, "so packets go over the ring's end");
    for step in 0..100_u8 {
        let value = f32::from(step);
        client.put([value, 1.0, 2.0, value]);
        // The service says that it is about to sleep before it does; so we have to wake it.
        let word = &burst.requests.event;
        until("the service's sleep", || word.load(Ordering::Acquire) & NOT_EMPTY == 0);
        assert!(burst.send(&packet), "the kernel is called for a sleeper");
        assert_eq!(burst.receive(), Some(success(None)));
        assert_eq!(client.sums(), [value + 2.0, value + 1.0]);
    }

    // Whatever is wrong with a request is its result, and the burst goes on.
    let mut cut = packet.clone();
    cut.truncate(7 * DATUM);
    assert_eq!(burst.run(&cut), failure(GENERAL_FAILURE));
    let mut numbered = request([INPUT_SLOT, OUTPUT_SLOT]);
    numbered.number = Some(1);
    assert_eq!(burst.run(&numbered.encode()), failure(GENERAL_FAILURE), "not agreed on");
    for slots in [[INPUT_SLOT, -1], [-5, OUTPUT_SLOT]] {
        assert_eq!(burst.run(&request(slots).encode()), failure(INVALID_ARGUMENT));
    }
    let mut outside = request([INPUT_SLOT, OUTPUT_SLOT]);
    outside.inputs[0].1 = 2;
    assert_eq!(burst.run(&outside.encode()), failure(INVALID_ARGUMENT));
    let mut small = request([INPUT_SLOT, OUTPUT_SLOT]);
    small.outputs[0].3 = 4;
    let shapes = vec![(false, vec![2])];
    let answer = burst.run(&small.encode());
    assert_eq!(answer, Answer { shapes, ..failure(OUTPUT_INSUFFICIENT_SIZE) });
    assert_eq!(burst.run(&packet), success(None));

    // An end: the reply comes, both queues say so, and the other things can go.
    client.connection.done(CLOSE_BURST, Writer::default().u32(burst.number), &[]);
    assert!(burst.is_closed() && burst.receive().is_none());
    for memory in [INPUTS, OUTPUTS] {
        client.connection.done(FORGET_MEMORY, Writer::default().u32(memory), &[]);
    }
    client.connection.done(RELEASE_MODEL, Writer::default().u32(client.model), &[]);
    let call = client.execute(&request([0; 2]), &both());
    assert_eq!(client.connection.refused(EXECUTE, call, &[]), INVALID_ARGUMENT);
}

#[test]
fn it_keeps_several_requests_under_way() {
    let service = Service::start("page-pipelined");
    let mut client = Client::new(&service.path());
    let mut burst = Burst::new(&mut client, FEATURES, POLL_THEN_SLEEP, 4, 50);
    burst.push_both(&mut client);
    let (mut next, mut sent) = (0_u64, Vec::new());
    for round in 0..50_u8 {
        client.put([f32::from(round), 0.0, 1.0, 1.0]);
        for _ in 0..4 {
            let mut one = request([INPUT_SLOT, OUTPUT_SLOT]);
            one.measure = i32::from(next % 2 == 1);
            one.deadline = (next % 3 == 1).then(|| now() + 60_000_000_000);
            one.loop_timeout = (next % 3 == 2).then_some(1_000_000_000);
            one.number = Some(next);
            sent.push(burst.send_differences(&one.encode()));
            next += 1;
        }
        for number in next - 4..next {
            let answer = burst.receive().expect("a result");
            let success = success(Some(number));
            if number % 2 == 0 {
                assert_eq!(answer, success);
                continue;
            }
            let [_, in_driver] = answer.nanos.expect("asked for");
            assert!(answer.micros[1] <= in_driver / 1000 + 1, "{answer:?}");
            assert_eq!((answer.status, answer.number), (0, Some(number)));
        }
        assert_eq!(client.sums(), [f32::from(round) + 1.0, 1.0]);
    }

    assert!(sent.contains(&10) && sent.contains(&4), "some as a whole, some not: {sent:?}");

    // A deadline that is past is that request's result.
    let mut late = request([INPUT_SLOT, OUTPUT_SLOT]);
    (late.deadline, late.number) = (Some(1), Some(next));
    let missed = Answer { number: Some(next), ..failure(MISSED_DEADLINE_PERSISTENT) };
    assert_eq!(burst.run(&late.encode()), missed);

    // Nobody knows where a packet ends that does not say so: the burst is over, nothing else.
    burst.send(&[5; DATUM]);
    assert_eq!(burst.receive(), None);
    let Notice::BurstEnded { burst: ended, reason } = client.connection.notice() else {
        panic!("the burst has ended")
    };
    assert!(ended == burst.number && !reason.is_empty());
    assert!(burst.is_closed());
    let mut again = Burst::new(&mut client, FEATURES, POLL_THEN_SLEEP, 1, 50);
    again.push_both(&mut client);
    assert_eq!(again.run(&request([INPUT_SLOT, OUTPUT_SLOT]).encode()), success(None));
}

#[test]
fn it_is_asked_for_memories_and_woken_by_the_service() {
    let service = Service::start("page-memories");
    let mut client = Client::new(&service.path());
    client.put([3.0, 4.0, 5.0, 6.0]);
    let mut burst = Burst::new(&mut client, 0, SLEEP, 1, 32);
    let packet = request([INPUT_SLOT, OUTPUT_SLOT]).encode();

    // Asleep before the answer goes out, so that only a wake-up of the service's can end it.
    burst.send(&packet);
    let asked = client.connection.notice();
    let slots = vec![OUTPUT_SLOT, INPUT_SLOT];
    let Notice::GetMemories { id, burst: by, slots: wanted } = asked else { panic!("{asked:?}") };
    let mut sorted = wanted.clone();
    sorted.sort_unstable();
    assert_eq!((by, sorted), (burst.number, slots));
    let output = Memory::create("output", 64).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let word = burst.results.event.clone();
    word.fetch_or(NOT_EMPTY, Ordering::Relaxed);
    let answer = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            tell.send(rustix::thread::gettid()).unwrap();
            burst.receive()
        });
        // It clears its bit on the way to its sleep, and nothing else there sleeps.
        let thread = told.recv().unwrap();
        until("the word", || word.load(Ordering::Acquire) & NOT_EMPTY == 0);
        until_asleep(thread);
        let memory = |slot: &i32| if *slot == INPUT_SLOT { &client.inputs } else { &output };
        let memories: Vec<_> =
            wanted.iter().map(|slot| (POOL_BYTES, memory(slot).as_fd())).collect();
        client.connection.memories(id, 0, &memories);
        waiting.join().unwrap()
    });
    assert_eq!(answer, Some(success(None)));
    assert!(burst.sleeps > 0, "woken by the service");
    let mut sum = [0; 4];
    let mapping = Mapping::map(&output).unwrap();
    mapping.region(0, 64).unwrap().copy_out(0, &mut sum).unwrap();
    assert_eq!(f32::from_le_bytes(sum), 8.0);

    // A slot in use is refused; freed, it can be filled again.
    let again = burst.push(OUTPUT_SLOT, &shared(OUTPUTS));
    let status = client.connection.refused(PUSH_MEMORY, again.clone(), &[]);
    assert_eq!(status, INVALID_ARGUMENT);
    let free = Writer::default().u32(burst.number).i32(OUTPUT_SLOT);
    client.connection.done(FREE_MEMORY, free.clone(), &[]);
    client.connection.done(PUSH_MEMORY, again, &[]);
    assert_eq!(burst.run(&packet), success(None));
    assert_eq!(client.sums(), [8.0, 10.0]);

    // A client that has no memory for it says which status the request gets.
    client.connection.done(FREE_MEMORY, free.clone(), &[]);
    client.connection.done(FREE_MEMORY, free, &[]);
    burst.send(&packet);
    let Notice::GetMemories { id, slots, .. } = client.connection.notice() else {
        panic!("a question")
    };
    assert_eq!(slots, [OUTPUT_SLOT]);
    client.connection.memories(id, OUTPUT_INSUFFICIENT_SIZE + 1, &[]);
    assert_eq!(burst.receive(), Some(failure(INVALID_ARGUMENT)));
}

/// Waits until a thread of this process sleeps.
fn until_asleep(thread: rustix::thread::Pid) {
    let stat = format!("/proc/self/task/{}/stat", thread.as_raw_nonzero());
    let state = || {
        let stat = std::fs::read_to_string(&stat).unwrap();
        stat.rsplit(") ").next().unwrap().starts_with('S')
    };
    until("the sleep", state);
}

#[test]
fn what_is_later_than_the_page_is_skipped_or_refused_and_the_connection_lives() {
    let service = Service::start("page-later");
    let new = Writer::default;
    let mut connection = Connection::open(&service.path());
    // A client of later versions too, with additions that no page has.
    let greeting = connection.greet([1, 9], FEATURES | 1 << 63, 0);
    assert_eq!((greeting.welcome, greeting.version, greeting.features), (0, 2, FEATURES));
    // A call with a tail, in a message with a tail.
    let status = new().u64(1).kind(DEVICE_STATUS, &new().u32(0).text("later")).raw(b"and later");
    connection.send(&new().kind(0, &status).0, &[]);
    let answer = connection.reply(1).unwrap();
    assert_eq!(Reader(&answer.bytes).u32(), 3, "DeviceStatus");
    // An unknown call, whatever comes with it.
    let unknown = new().u64(2).kind(500, &new().text("fields"));
    connection.send(&new().kind(0, &unknown).0, &[std::io::stderr().as_fd()]);
    let refusal = connection.reply(2).unwrap_err();
    assert_eq!((refusal.status, refusal.cause), (INVALID_ARGUMENT, 1));
    assert!(refusal.reason.contains("500"), "{}", refusal.reason);
    // Messages that are no calls are ignored.
    connection.send(&new().kind(7, &new().text("news")).0, &[]);
    // Bytes behind a call, and a call of more bytes than any message has.
    for (id, more) in [(3, 1), (4, 70_000)] {
        let call = new().u64(id).kind(LIST_DEVICES, &new());
        connection.send(&new().kind(0, &call).raw(&vec![0; more]).0, &[]);
        let refusal = connection.reply(id).unwrap_err();
        assert_eq!((refusal.status, refusal.cause), (INVALID_ARGUMENT, 2));
    }
    let listed = connection.call(LIST_DEVICES, new(), &[]).unwrap();
    assert_eq!(Reader(&listed.bytes).u32(), 1);
}

#[test]
fn it_is_told_why_it_is_not_let_in() {
    let service = Service::start("page-refused");
    let open = || Connection::open(&service.path());
    let mut later = open();
    let greeting = later.greet([3, 4], 0, 0);
    assert_eq!((greeting.welcome, greeting.version, greeting.versions), (3, 2, [2, 2]));
    assert!(!greeting.detail.is_empty() && greeting.limits.is_empty() && later.is_hung_up());
    let mut demanding = open();
    let greeting = demanding.greet([2, 2], FEATURES, 1 << 50 | PIPELINING);
    assert_eq!((greeting.welcome, greeting.missing), (4, 1 << 50));
    assert!(greeting.detail.contains("bit 50") && demanding.is_hung_up());
    // A client of version 1 finds ours where it looks for it.
    let old = open();
    let hello = Writer::default().raw(b"burst-nn").u32(1).u64(FEATURES).text("old");
    old.send(&hello.0, &[]);
    let answer = old.receive().expect("a greeting").bytes;
    let mut from = Reader(&answer);
    assert_eq!((from.take(8), from.u32()), (&b"burst-nn"[..], 2));
    assert!(old.is_hung_up());
    // A greeting that is cut short.
    let cut = open();
    let hello = Writer::default().raw(b"burst-nn").u32(2).u32(99).u32(2);
    cut.send(&hello.0, &[]);
    let answer = cut.receive().expect("a greeting").bytes;
    let mut from = Reader(&answer[12..]);
    let mut record = from.record();
    assert_eq!((record.u32(), record.u32(), record.u32()), (2, 2, 5));
    assert!(cut.is_hung_up());
}

#[test]
fn the_service_hangs_up_where_the_page_says_so() {
    let service = Service::start("page-hang-up");
    // Something else altogether is not answered.
    let other = Connection::open(&service.path());
    other.send(b"GET / HTTP/1.1", &[]);
    assert!(other.receive().is_none());
    // A message cut short, a call that is shorter than its fields, bytes behind what is no call.
    let new = Writer::default;
    let list = new().kind(0, &new().u64(1).kind(LIST_DEVICES, &new()));
    let cut = Writer(list.0[..list.0.len() - 1].to_vec());
    let short = new().kind(0, &new().u64(1).kind(DEVICE_INFO, &new().u16(0)));
    let long = new().kind(1, &new().u64(1).i32(4).u32(0)).u8(0);
    for message in [cut, short, long] {
        let mut other = Connection::open(&service.path());
        other.enter(FEATURES);
        other.send(&message.0, &[]);
        assert!(other.receive().is_none());
    }
    // And nobody else notices.
    let mut client = Client::new(&service.path());
    client.put([1.0; 4]);
    let call = client.execute(&request([0; 2]), &both());
    let (answer, _) = executed(&client.connection.call(EXECUTE, call, &[]).unwrap());
    assert_eq!((answer, client.sums()), (success(None), [2.0, 2.0]));
}
