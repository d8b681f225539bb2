//! The two-process checklist of `fmq.md` 8.2: this process is the client, the service is a second
//! process that holds the other end and does what it is told.
//!
//! Items are `i32`, as many as libfmq's service has: a page less 16 bytes, by four.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test panics")]

use std::time::Duration;

use fmq::{
    Consumer, Deadline, Producer, QueueConfig, QueueError, UnsyncConsumer, UnsyncProducer, Wait,
};

use crate::common::process::{Peer, Socket};
use crate::common::{self, patience};

const CAPACITY: usize = (4096 - 16) / 4;

fn items(from: usize, n: usize) -> Vec<u8> {
    (from..from + n).flat_map(|i| i32::try_from(i).expect("small").to_ne_bytes()).collect()
}

// ---- the service ----------------------------------------------------------------------------

/// What the service holds, once it was told to make or take a queue.
#[derive(Default)]
struct Service {
    producer: Option<Producer>,
    consumer: Option<Consumer>,
    unsync_producer: Option<UnsyncProducer>,
    unsync_consumer: Option<UnsyncConsumer>,
}

impl Service {
    /// `command n times`: does it, and says how it went.
    fn obey(&mut self, command: &str, n: usize, times: usize) -> Result<(), QueueError> {
        for round in 0..times {
            let sent = items(round * n, n);
            let mut got = vec![0; sent.len()];
            match command {
                "write" => self.producer.as_mut().expect("a queue").write(&sent)?,
                "bwrite" => {
                    self.producer.as_mut().expect("a queue").write_blocking(&sent, patience())?;
                }
                "uwrite" => self.unsync_producer.as_mut().expect("a queue").write(&sent)?,
                "read" => self.consumer.as_mut().expect("a queue").read(&mut got)?,
                "bread" => {
                    self.consumer.as_mut().expect("a queue").read_blocking(&mut got, patience())?;
                }
                "uread" => self.unsync_consumer.as_mut().expect("a queue").read(&mut got)?,
                other => panic!("unknown command {other}"),
            }
            assert!(command.ends_with("write") || got == sent, "{command}: other items");
        }
        Ok(())
    }

    /// Makes the queue that the client asked for.
    fn open(&mut self, role: &str, socket: &Socket) {
        let config = QueueConfig::new(4, CAPACITY);
        let descriptor = match role {
            "producer" => {
                let end = self.producer.insert(Producer::create(&config).unwrap());
                end.descriptor()
            }
            "consumer" => {
                let end = self.consumer.insert(Consumer::create(&config).unwrap());
                end.descriptor()
            }
            "unsync" => {
                let end = self.unsync_producer.insert(UnsyncProducer::create(&config).unwrap());
                end.descriptor()
            }
            other => panic!("unknown role {other}"),
        };
        socket.send("here", Some(&descriptor.unwrap()));
    }
}

#[test]
#[ignore = "the second process of the tests beside it, started by them"]
fn service() {
    let socket = Socket::of_child();
    let mut service = Service::default();
    while let Some((text, queue)) = socket.receive() {
        let words: Vec<&str> = text.split(' ').collect();
        match (words[0], queue) {
            ("open", _) => service.open(words[1], &socket),
            ("take", Some(queue)) => {
                service.unsync_consumer = Some(UnsyncConsumer::attach(queue).unwrap());
                socket.send("Ok(())", None);
            }
            (command, _) => {
                let [n, times] = [1, 2].map(|i| words.get(i).map_or(1, |w| w.parse().unwrap()));
                let result = service.obey(command, n, times);
                socket.send(&format!("{result:?}"), None);
            }
        }
    }
}

/// A service that writes, and our reading end.
fn reading() -> (Peer, Consumer) {
    let peer = Peer::start("two_processes::service");
    let consumer = Consumer::attach(peer.ask_for_queue("open producer")).unwrap();
    (peer, consumer)
}

/// A service that reads, and our writing end.
fn writing() -> (Peer, Producer) {
    let peer = Peer::start("two_processes::service");
    let producer = Producer::attach(peer.ask_for_queue("open consumer")).unwrap();
    (peer, producer)
}

/// A service that writes an unsynchronized queue, and our reading end.
fn unsync_reading() -> (Peer, UnsyncConsumer) {
    let peer = Peer::start("two_processes::service");
    let consumer = UnsyncConsumer::attach(peer.ask_for_queue("open unsync")).unwrap();
    (peer, consumer)
}

/// A service that reads an unsynchronized queue, and our writing end.
fn unsync_writing() -> (Peer, UnsyncProducer) {
    let peer = Peer::start("two_processes::service");
    let producer = UnsyncProducer::create(&QueueConfig::new(4, CAPACITY)).unwrap();
    peer.socket.send("take", Some(&producer.descriptor().unwrap()));
    assert_eq!(peer.answer(), "Ok(())");
    (peer, producer)
}

// ---- synchronized ---------------------------------------------------------------------------

#[test]
fn blocking_read_write_1_and_2() {
    for (wait, bits) in [(Wait::Sleep, None), (Wait::default(), Some((1, 2)))] {
        let (peer, mut producer) = writing();
        producer.set_wait(wait);
        peer.socket.send("bread 64 1", None);
        let first = items(0, 64);
        match bits {
            None => producer.write_blocking(&first, patience()).unwrap(),
            Some((not_full, not_empty)) => {
                producer.write_blocking_bits(&first, not_full, not_empty, patience()).unwrap()
            }
        }
        // The whole capacity fits only after the service has read, and woken us.
        producer.write_blocking(&items(0, CAPACITY), patience()).unwrap();
        assert_eq!(peer.answer(), "Ok(())");
        assert_eq!(peer.ask(&format!("bread {CAPACITY} 1")), "Ok(())");
    }
}

#[test]
fn blocking_read_write_repeat_1_to_3() {
    // Equal rates; the reader twice as often; the writer twice as often.
    for (write, read) in [(64, 64), (64, 32), (32, 64)] {
        let (peer, mut producer) = writing();
        let total = 64 * 256;
        peer.socket.send(&format!("bread {read} {}", total / read), None);
        for round in 0..total / write {
            producer.write_blocking(&items(round * write, write), patience()).unwrap();
        }
        assert_eq!(peer.answer(), "Ok(())", "{write} {read}");
    }
}

#[test]
fn blocking_read_write_zero_messages() {
    let (peer, mut producer) = writing();
    producer.write_blocking(&[], Deadline::at_ns(0)).unwrap();
    assert_eq!(peer.ask("bread 0 1"), "Ok(())");
}

#[test]
fn small_input_reader_and_writer() {
    let (peer, mut consumer) = reading();
    for _ in 0..2 {
        assert_eq!(peer.ask("write 16 1"), "Ok(())");
    }
    let mut got = vec![0; 64];
    consumer.read(&mut got).unwrap();
    assert_eq!(got, items(0, 16));
    got.fill(0);
    let claim = consumer.peek(16).unwrap();
    claim.copy_out(0, &mut got).unwrap();
    claim.commit(16).unwrap();
    assert_eq!(got, items(0, 16));

    let (peer, mut producer) = writing();
    producer.write(&items(0, 16)).unwrap();
    assert_eq!(peer.ask("read 16 1"), "Ok(())");
    let mut claim = producer.claim(16).unwrap();
    claim.copy_in(0, &items(0, 16)).unwrap();
    claim.commit(16).unwrap();
    assert_eq!(peer.ask("read 16 1"), "Ok(())");
}

/// The client moves the service's counters out of step: the service refuses to go on, for ever.
#[test]
fn misaligned_write_counter() {
    let peer = Peer::start("two_processes::service");
    let descriptor = peer.ask_for_queue("open producer");
    let theirs = common::libfmq::Libfmq::attach(descriptor, false);
    assert_eq!(peer.ask("write 4 1"), "Ok(())");
    let (read, write) = theirs.words();
    // The service never reads its own counter back: only ours can hurt it.
    write.store(CAPACITY as u64 * 4 - 1, std::sync::atomic::Ordering::Release);
    assert_eq!(peer.ask("write 4 1"), "Ok(())");
    read.store(CAPACITY as u64 * 4 - 1, std::sync::atomic::Ordering::Release);
    let full = peer.ask(&format!("write {CAPACITY} 1"));
    assert!(full.contains("Corrupt"), "{full}");
    assert!(peer.ask("write 1 1").contains("Corrupt"));
}

#[test]
fn read_when_empty_and_write_when_full() {
    let (peer, mut consumer) = reading();
    let empty = QueueError::Empty { wanted: 8, available: 0 };
    assert_eq!(consumer.read(&mut [0; 8]), Err(empty));
    assert_eq!(peer.ask(&format!("write {CAPACITY} 1")), "Ok(())");
    assert!(peer.ask("write 1 1").contains("Full"));
    let mut got = vec![0; CAPACITY * 4];
    consumer.read(&mut got).unwrap();
    assert_eq!(got, items(0, CAPACITY));
}

#[test]
fn large_input_1_to_3() {
    let (peer, mut producer) = writing();
    let too_many = CAPACITY + 1;
    assert!(matches!(producer.write(&items(0, too_many)), Err(QueueError::TooLarge { .. })));
    assert!(peer.ask("read 1 1").contains("Empty"));
    producer.write(&items(0, CAPACITY)).unwrap();
    assert!(matches!(producer.write(&items(0, 1)), Err(QueueError::Full { .. })));
    assert_eq!(peer.ask(&format!("read {CAPACITY} 1")), "Ok(())");
}

#[test]
fn multiple_read_and_multiple_write() {
    let (peer, mut producer) = writing();
    producer.write(&items(0, CAPACITY)).unwrap();
    assert_eq!(peer.ask(&format!("read 4 {}", CAPACITY / 4)), "Ok(())");
    for round in 0..CAPACITY / 4 {
        producer.write(&items(round * 4, 4)).unwrap();
    }
    assert_eq!(peer.ask(&format!("read {CAPACITY} 1")), "Ok(())");
}

#[test]
fn read_write_wrap_around_1_and_2() {
    let (peer, mut producer) = writing();
    producer.write(&items(0, CAPACITY - 1)).unwrap();
    assert_eq!(peer.ask(&format!("read {} 1", CAPACITY - 1)), "Ok(())");
    producer.write(&items(0, CAPACITY)).unwrap();
    assert_eq!(peer.ask(&format!("read {CAPACITY} 1")), "Ok(())");
    let mut claim = producer.claim(CAPACITY).unwrap();
    assert_ne!(claim.piece_lens()[1], 0);
    claim.copy_in(0, &items(0, CAPACITY)).unwrap();
    claim.commit(CAPACITY).unwrap();
    assert_eq!(peer.ask(&format!("read {CAPACITY} 1")), "Ok(())");
}

/// Not in libfmq: it has nothing that ends a wait when the other side is gone.
#[test]
fn a_killed_peer_is_reported_by_its_watcher() {
    let (mut peer, mut consumer) = reading();
    let closer = consumer.closer();
    let reader = std::thread::spawn(move || consumer.wait(1, patience()));
    peer.kill();
    closer.close(); // what a watcher of the process does
    assert_eq!(reader.join().unwrap(), Err(QueueError::PeerDied));
}

// ---- unsynchronized -------------------------------------------------------------------------

#[test]
fn unsync_small_input_reader_and_writer() {
    let (peer, mut consumer) = unsync_reading();
    assert_eq!(peer.ask("uwrite 16 1"), "Ok(())");
    let mut got = vec![0; 64];
    consumer.read(&mut got).unwrap();
    assert_eq!(got, items(0, 16));

    let (peer, mut producer) = unsync_writing();
    producer.write(&items(0, 16)).unwrap();
    assert_eq!(peer.ask("uread 16 1"), "Ok(())");
}

#[test]
fn unsync_read_when_empty_and_write_when_full() {
    let (peer, mut consumer) = unsync_reading();
    assert!(matches!(consumer.read(&mut [0; 8]), Err(QueueError::Empty { .. })));
    assert_eq!(peer.ask(&format!("uwrite {CAPACITY} 1")), "Ok(())");
    assert_eq!(peer.ask("uwrite 1 1"), "Ok(())", "it never waits");
    assert!(matches!(consumer.read(&mut [0; 4]), Err(QueueError::Overrun { .. })));
}

#[test]
fn unsync_large_input_1_to_3() {
    let (peer, mut producer) = unsync_writing();
    let result = producer.write(&items(0, CAPACITY + 1));
    assert!(matches!(result, Err(QueueError::TooLarge { .. })));
    assert!(peer.ask("uread 1 1").contains("Empty"));
    producer.write(&items(0, CAPACITY)).unwrap();
    assert_eq!(peer.ask(&format!("uread {CAPACITY} 1")), "Ok(())");
    producer.write(&items(0, CAPACITY)).unwrap();
    producer.write(&items(0, 1)).unwrap();
    assert!(peer.ask(&format!("uread {CAPACITY} 1")).contains("Overrun"));
}

#[test]
fn unsync_multiple_read_multiple_write_and_wrap_around() {
    let (peer, mut producer) = unsync_writing();
    producer.write(&items(0, CAPACITY)).unwrap();
    assert_eq!(peer.ask(&format!("uread 4 {}", CAPACITY / 4)), "Ok(())");
    for round in 0..CAPACITY / 4 {
        producer.write(&items(round * 4, 4)).unwrap();
    }
    assert_eq!(peer.ask(&format!("uread {CAPACITY} 1")), "Ok(())");
    producer.write(&items(0, CAPACITY - 1)).unwrap();
    assert_eq!(peer.ask(&format!("uread {} 1", CAPACITY - 1)), "Ok(())");
    producer.write(&items(0, CAPACITY)).unwrap();
    assert_eq!(peer.ask(&format!("uread {CAPACITY} 1")), "Ok(())");
}

#[test]
fn unsync_two_readers_in_two_processes_get_all_items() {
    let (first, mut producer) = unsync_writing();
    let second = Peer::start("two_processes::service");
    second.socket.send("take", Some(&producer.descriptor().unwrap()));
    assert_eq!(second.answer(), "Ok(())");
    producer.write(&items(0, 16)).unwrap();
    for peer in [&first, &second] {
        assert_eq!(peer.ask("uread 16 1"), "Ok(())");
    }
}

#[test]
fn unsync_overflow_notification_in_two_processes() {
    let (first, mut producer) = unsync_writing();
    let second = Peer::start("two_processes::service");
    second.socket.send("take", Some(&producer.descriptor().unwrap()));
    assert_eq!(second.answer(), "Ok(())");
    producer.write(&items(0, CAPACITY)).unwrap();
    producer.write(&items(0, 1)).unwrap();
    for peer in [&first, &second] {
        assert!(peer.ask("uread 1 1").contains("Overrun"));
    }
    producer.write(&items(0, 1)).unwrap();
    for peer in [&first, &second] {
        assert_eq!(peer.ask("uread 1 1"), "Ok(())");
    }
}

#[test]
fn unsync_multiple_readers_after_overflow() {
    let (first, mut producer) = unsync_writing();
    producer.write(&items(0, CAPACITY)).unwrap();
    producer.write(&items(0, 1)).unwrap();
    assert!(first.ask("uread 1 1").contains("Overrun"));
    producer.write(&items(0, 1)).unwrap();
    assert_eq!(first.ask("uread 1 1"), "Ok(())");

    let second = Peer::start("two_processes::service");
    second.socket.send("take", Some(&producer.descriptor().unwrap()));
    assert_eq!(second.answer(), "Ok(())");
    assert!(second.ask("uread 1 1").contains("Overrun"));
    producer.write(&items(0, 1)).unwrap();
    assert_eq!(second.ask("uread 1 1"), "Ok(())");
}

/// `AidlTypeChecks`: types of fixed size of every length go in and come out as bytes.
#[test]
fn items_of_every_fixed_size() {
    for quantum in [1, 2, 4, 8, 16, 24, 3, 40] {
        let (mut producer, mut consumer) = fmq::pair(&QueueConfig::new(quantum, 64)).unwrap();
        let sent = common::pattern(quantum, quantum);
        producer.write(&sent).unwrap();
        let mut got = vec![0; quantum];
        consumer.read(&mut got).unwrap();
        assert_eq!(got, sent);
    }
}

// ---- eight readers --------------------------------------------------------------------------

/// An item of the many-readers test: one number, eight times. A torn copy has two.
const WORDS: usize = 8;
const LAST: u64 = 1 << 63;

#[test]
#[ignore = "one of the reader processes of the test below, started by it"]
fn reader() {
    let socket = Socket::of_child();
    let (_, queue) = socket.receive().expect("the test is there");
    let mut consumer = UnsyncConsumer::attach(queue.expect("a queue")).unwrap();
    socket.send("ready", None);
    let (mut next, mut overruns, mut read) = (None, 0_u64, 0_u64);
    loop {
        let mut item = [0; WORDS * 8];
        match consumer.read(&mut item) {
            Ok(()) => {}
            Err(QueueError::Overrun { .. }) => {
                (next, overruns) = (None, overruns + 1);
                continue;
            }
            Err(QueueError::Empty { .. }) => {
                std::thread::yield_now();
                continue;
            }
            Err(error) => panic!("{error}"),
        }
        let mut words = item.chunks_exact(8).map(|w| u64::from_ne_bytes(w.try_into().unwrap()));
        let number = words.next().unwrap();
        assert!(words.all(|word| word == number), "torn");
        if number & LAST != 0 {
            break;
        }
        assert!(next.is_none_or(|next| number == next), "{number} where {next:?} was due");
        (next, read) = (Some(number + 1), read + 1);
        match read {
            1 => socket.send("reading", None),
            2 => socket.send("racing", None),
            _ => {}
        }
    }
    socket.send(&format!("{read} {overruns}"), None);
}

/// One writer at full speed, eight reader processes. `FMQ_READERS_SECONDS=60` for longer.
#[test]
fn eight_readers_never_accept_a_torn_or_missing_item() {
    let seconds = std::env::var("FMQ_READERS_SECONDS").map_or(2, |s| s.parse().unwrap());
    let mut producer = UnsyncProducer::create(&QueueConfig::new(WORDS * 8, 100)).unwrap();
    let readers: Vec<Peer> = (0..8).map(|_| Peer::start("two_processes::reader")).collect();
    for peer in &readers {
        peer.socket.send("queue", Some(&producer.descriptor().unwrap()));
        assert_eq!(peer.answer(), "ready");
    }
    let write = |producer: &mut UnsyncProducer, number: u64| {
        producer.write(&[number; WORDS].map(u64::to_ne_bytes).concat()).unwrap();
    };
    // The first item is read by all before the race begins.
    write(&mut producer, 0);
    assert!(readers.iter().all(|peer| peer.answer() == "reading"));
    let [end, too_late] = [seconds, seconds + 60].map(|s| Deadline::after(Duration::from_secs(s)));
    let racing = std::thread::spawn(move || {
        assert!(readers.iter().all(|peer| peer.answer() == "racing"));
        readers
    });
    let mut written = 1_u64;
    while !end.has_passed(fmq::clock::now_ns()) || !racing.is_finished() {
        assert!(!too_late.has_passed(fmq::clock::now_ns()), "a reader never reads in the race");
        for _ in 0..1000 {
            write(&mut producer, written);
            written += 1;
        }
        // With one CPU for all, nobody reads anything at full speed alone.
        for _ in 0..20 {
            write(&mut producer, written);
            written += 1;
            std::thread::yield_now();
        }
    }
    let readers = racing.join().expect("a reader failed");
    // An item that says so ends each reader; one at a time, or they would overrun it.
    let (done, finished) = std::sync::mpsc::channel();
    let waiter = std::thread::spawn(move || {
        let reports: Vec<String> = readers.iter().map(Peer::answer).collect();
        done.send(()).unwrap();
        (reports, readers.into_iter().all(Peer::finish))
    });
    while finished.try_recv().is_err() && !waiter.is_finished() {
        write(&mut producer, LAST);
        std::thread::yield_now();
    }
    let (reports, passed) = waiter.join().expect("a reader failed");
    println!("{written} written; read and overruns per reader: {reports:?}");
    assert!(passed);
}
