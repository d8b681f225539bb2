//! The OpenMetrics text of a service's counters.

use std::fmt::Error;
use std::sync::Arc;

use burst_hal::ErrorStatus;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::tally::{BOUNDS_NS, Counts, STATUSES};
use super::{GivenUp, Metrics, ModelView, Reader};
use crate::admission::{Balance, Limit};

/// Models whose own histograms are shown; requests of further ones are in the totals alone. A
/// scrape of so many is some hundred KiB.
const MODELS_SHOWN: usize = 128;

/// Users whose accounts are shown.
const USERS_SHOWN: usize = 128;

/// Nanoseconds of a second.
const NANOS: f64 = 1e9;

impl Metrics {
    /// Everything counted so far as OpenMetrics text, version 1.0.0.
    #[must_use]
    pub fn encode(self: &Arc<Self>) -> String {
        self.text_for(Reader::Owner)
    }

    /// What this reader may see of it.
    pub(super) fn text_for(self: &Arc<Self>, reader: Reader) -> String {
        let mut registry = Registry::with_prefix("burst");
        registry.register_collector(Box::new(Scrape(Arc::clone(self), reader)));
        let mut text = String::new();
        // Writing to a string does not fail.
        let encoded = prometheus_client::encoding::text::encode(&mut text, &registry);
        debug_assert!(encoded.is_ok());
        text
    }
}

#[derive(Debug)]
struct Scrape(Arc<Metrics>, Reader);

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let Scrape(metrics, reader) = self;
        let (mut models, burst, socket) = metrics.look();
        models.retain(|model| reader.may_see(model.uid));
        let mut out = Out(&mut encoder);
        service(metrics, &mut out)?;
        limits(metrics, &mut out)?;
        accounts(metrics, *reader, &mut out)?;
        requests(&burst, &socket, &mut out)?;
        per_model(&models, &mut out)
    }
}

/// Writes one metric after the other.
struct Out<'a, 'e>(&'a mut DescriptorEncoder<'e>);

impl Out<'_, '_> {
    fn counter(&mut self, name: &str, help: &str, value: u64) -> Result<(), Error> {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    fn counters<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, u64)>,
    ) -> Result<(), Error> {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in values {
            metric.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
        }
        Ok(())
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) -> Result<(), Error> {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        metric.encode_gauge(&value)
    }

    fn gauges<L: EncodeLabelSet>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, u64)>,
    ) -> Result<(), Error> {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in values {
            metric.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn histograms<'l, L: EncodeLabelSet + 'l>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (L, &'l Counts)>,
    ) -> Result<(), Error> {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (labels, counts) in values {
            let buckets = buckets(counts);
            metric.encode_family(&labels)?.encode_histogram::<NoLabelSet>(
                seconds(counts.nanos),
                counts.timed(),
                &buckets,
                None,
            )?;
        }
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds to 15 digits are enough to read")]
fn seconds(nanos: u64) -> f64 {
    nanos as f64 / NANOS
}

fn buckets(counts: &Counts) -> Vec<(f64, u64)> {
    let bounds = BOUNDS_NS.iter().map(|bound| seconds(*bound)).chain([f64::INFINITY]);
    bounds.zip(counts.buckets.iter().copied()).collect()
}

fn service(metrics: &Metrics, out: &mut Out<'_, '_>) -> Result<(), Error> {
    let load =
        |counter: &std::sync::atomic::AtomicU64| counter.load(std::sync::atomic::Ordering::Relaxed);
    let mut version =
        out.0.encode_descriptor("service", "What is running", None, MetricType::Info)?;
    version.encode_info(&[("version", env!("CARGO_PKG_VERSION"))])?;
    let mut started = out.0.encode_descriptor(
        "start_time_seconds",
        "When the service started, in seconds since 1970",
        None,
        MetricType::Gauge,
    )?;
    started.encode_gauge(&metrics.seconds_since_epoch())?;
    out.counter("clients", "Connections taken", load(&metrics.clients))?;
    out.counter("bursts", "Bursts started", load(&metrics.bursts))?;
    let given_up = GivenUp::NAMES.iter().zip(&metrics.given_up);
    out.counters(
        "bursts_given_up",
        "Bursts that ended before their client closed them",
        given_up.map(|(reason, count)| ([("reason", *reason)], load(count))),
    )?;
    out.counter(
        "resources_released",
        "Times that a burst let go of its resources after idle time",
        load(&metrics.releases),
    )?;
    out.counter(
        "malformed_packets",
        "Request packets that could not be decoded",
        load(&metrics.malformed_packets),
    )?;
    out.counter(
        "malformed_messages",
        "Control messages that ended their connection",
        load(&metrics.malformed_messages),
    )?;
    out.gauge(
        "waiting_for_turn",
        "Who waits for its turn to compute just now",
        metrics.turns.waiting(),
    )?;
    out.counter(
        "computed_beside",
        "Times that somebody computed without a run token, as nobody who had one gave way",
        metrics.turns.begun_beside(),
    )?;
    out.gauge(
        "computing_beside",
        "Who computes without a run token just now, as nobody who has one gives way",
        metrics.turns.beside(),
    )?;
    out.gauges(
        "sandbox_layer",
        "Whether a layer of the sandbox is in force",
        metrics.sandbox.layers().map(|(layer, on)| ([("layer", layer)], u64::from(on))),
    )?;
    let levers = metrics.performance.levers();
    out.gauges(
        "performance_permitted",
        "Whether the service may ask the system to stay quick in this way",
        levers.iter().map(|lever| ([("lever", lever.name)], u64::from(lever.is_permitted()))),
    )?;
    out.gauges(
        "performance_held",
        "Whether the service asks the system to stay quick in this way just now",
        levers.iter().map(|lever| ([("lever", lever.name)], u64::from(lever.is_held()))),
    )
}

fn limits(metrics: &Metrics, out: &mut Out<'_, '_>) -> Result<(), Error> {
    // Of these there is a count; the others are limits of one call.
    let counted = [
        Limit::Clients,
        Limit::Models,
        Limit::Buffers,
        Limit::Bursts,
        Limit::Memories,
        Limit::MappedBytes,
        Limit::AllocatedBytes,
        Limit::SlowCalls,
        Limit::PendingExecutions,
    ];
    out.gauges(
        "in_use",
        "What all clients together have, by the limit that it counts against",
        counted.map(|limit| ([("limit", limit.name())], metrics.limits.used(limit))),
    )?;
    out.counters(
        "refusals",
        "Calls refused because a limit was reached",
        Limit::ALL.iter().map(|limit| ([("limit", limit.name())], metrics.limits.refusals(*limit))),
    )?;
    out.counter(
        "strangers",
        "Connections of users who may not use the service",
        metrics.limits.strangers(),
    )
}

/// What is in use of each resource, and the limit: by all users together, and by each.
fn accounts(metrics: &Metrics, reader: Reader, out: &mut Out<'_, '_>) -> Result<(), Error> {
    let whole = metrics.users.service().balances();
    let of_resource = |balance: &Balance| [("resource", balance.resource)];
    out.gauges(
        "service_used",
        "What all users together have in use",
        whole.iter().map(|balance| (of_resource(balance), balance.used)),
    )?;
    out.gauges(
        "service_limit",
        "What all users together may have in use",
        whole.iter().map(|balance| (of_resource(balance), balance.limit)),
    )?;
    let users = metrics.users.all();
    let seen = users.iter().filter(|(uid, _)| reader.may_see(*uid)).take(USERS_SHOWN);
    let lines: Vec<(String, Balance)> = seen
        .flat_map(|(uid, user)| user.account().balances().map(|balance| (uid.to_string(), balance)))
        .collect();
    let labels = |(uid, balance): &(String, Balance)| {
        [("user", uid.clone()), ("resource", balance.resource.to_owned())]
    };
    out.gauges(
        "user_used",
        "What a user has in use over all of its clients",
        lines.iter().map(|line| (labels(line), line.1.used)),
    )?;
    out.gauges(
        "user_limit",
        "What a user may have in use over all of its clients",
        lines.iter().map(|line| (labels(line), line.1.limit)),
    )
}

fn requests(burst: &Counts, socket: &Counts, out: &mut Out<'_, '_>) -> Result<(), Error> {
    let paths = [("burst", burst), ("socket", socket)];
    let by_status = paths.iter().flat_map(|(path, counts)| {
        (0..STATUSES).map(move |code| {
            let status = i32::try_from(code).ok().and_then(ErrorStatus::from_code);
            // NNAPI's name for it would say the opposite to who does not know it.
            let name = match status {
                Some(ErrorStatus::None) => "OK",
                status => status.map_or("", ErrorStatus::name),
            };
            ([("path", *path), ("status", name)], counts.statuses[code])
        })
    });
    out.counters(
        "requests",
        "Executions asked for, by the way they came and how they ended",
        by_status,
    )?;
    out.counters(
        "executions",
        "Executions handed to the device",
        paths.map(|(path, counts)| ([("path", path)], counts.executions)),
    )?;
    out.histograms(
        "request_duration_seconds",
        "From a request's arrival to its answer, where times are taken",
        paths.map(|(path, counts)| ([("path", path)], counts)),
    )
}

fn per_model(models: &[ModelView], out: &mut Out<'_, '_>) -> Result<(), Error> {
    let shown = &models[..models.len().min(MODELS_SHOWN)];
    let with_path = |view: &ModelView, path: &str| {
        let mut labels: Vec<(&str, String)> = view.labels.to_vec();
        labels.push(("path", path.to_owned()));
        labels
    };
    out.histograms(
        "model_request_duration_seconds",
        "The same for each prepared model there is now",
        shown.iter().flat_map(|view| {
            [(with_path(view, "burst"), &view.burst), (with_path(view, "socket"), &view.socket)]
        }),
    )
}
