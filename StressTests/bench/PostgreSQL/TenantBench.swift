#if canImport(CoreDataPostgreSQL)
import CoreData
import CoreDataPostgreSQL
import Foundation
import LoadFigures
import Synchronization

/// Measures requests to the tenants of one process, with a schema for each tenant and few connections.
struct TenantBench {
    let url: URL
    let tenants: Int
    let connections: Int
    let requests: Int
    /// Whether the stores share no sessions, because each URL has another name of the application.
    let isApart: Bool

    private static let threads = 16
    private static let prefix = "bench_tenant_"
    /// Tells the sessions of the tenants from others.
    private static let name = "strata-bench-tenants"

    /// Makes the tenants, sends requests to them at random, prints the figures, and removes the tenants.
    static func run(_ options: BenchOptions, tenants: Int) throws {
        guard let text = ProcessInfo.processInfo.environment["STRATA_TEST_POSTGRESQL"],
            let url = URL(string: "\(text)\(text.contains("?") ? "&" : "?")application_name=\(name)")
        else {
            throw BenchError(
                "Start it beside a server: Tests/postgresql-server.sh run \(CommandLine.arguments[0]) --tenants 400"
            )
        }
        let bench = TenantBench(
            url: url,
            tenants: tenants,
            connections: options.connections,
            requests: options.requests,
            isApart: options.isApart
        )
        try bench.measure()
    }

    private var location: any TenantLocation {
        let schemas = TenantSchemas(url, prefix: Self.prefix, maximumConnections: connections)
        return isApart ? SchemasApart(schemas: schemas) : schemas
    }

    /// Tenants whose stores have sessions of their own.
    private struct SchemasApart: TenantLocation {
        let schemas: TenantSchemas

        func storeDescription(of name: String) throws -> NSPersistentStoreDescription {
            let description = try schemas.storeDescription(of: name)
            description.url = description.url.flatMap {
                URL(string: $0.absoluteString.replacing(TenantBench.name, with: "\(TenantBench.name)-\(name)"))
            }
            return description
        }

        func names() throws -> [String] { try schemas.names() }
        func exists(_ name: String) throws -> Bool { try schemas.exists(name) }
        func destroy(_ name: String) throws { try schemas.destroy(name) }
    }

    private func container() -> TenantContainer {
        var settings = TenantContainer.Settings()
        settings.mostIdle = tenants
        settings.idleTime = .seconds(3600)
        return TenantContainer(managedObjectModel: FrameworkSide.model, at: location, settings: settings)
    }

    private func measure() throws {
        let names = (0..<tenants).map { "t\($0)" }
        let first = container()
        let made = try Self.each(names) { try Self.request(to: first.createAndWait($0), saves: true) }
        try Self.close(first)
        print("making a tenant: \(Self.text(made))")

        let tenants = container()
        defer { for name in names { try? location.destroy(name) } }
        defer { try? Self.close(tenants) }
        let cold = try Self.each(names) { try Self.request(to: tenants.tenantAndWait($0), saves: false) }
        print("first answer of a closed tenant: \(Self.text(cold))")

        let isOver = Atomic(false)
        let most = Mutex(Int64(0))
        let observed = DispatchGroup()
        observed.enter()
        let place = url
        Thread {
            defer { observed.leave() }
            guard let connection = try? RawPostgreSQL(place.absoluteString, schema: "public") else { return }
            let sql = "SELECT count(*) - 1 FROM pg_stat_activity WHERE application_name LIKE '\(Self.name)%'"
            while !isOver.load(ordering: .acquiring) {
                if let count = try? connection.query(sql).int64(0, 0) { most.withLock { $0 = max($0, count) } }
                usleep(20_000)
            }
        }.start()
        let start = ContinuousClock.now
        let all = try Self.each((0..<requests).map { $0 }) { number in
            try Self.request(to: tenants.tenantAndWait(names.randomElement() ?? ""), saves: number % 5 == 0)
        }
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        isOver.store(true, ordering: .releasing)
        observed.wait()
        print(
            "\(requests) requests of \(Self.threads) threads to tenants at random: \(Self.text(all)), \(Int(Double(requests) / seconds)) a second"
        )
        print("most sessions of the server: \(most.withLock { $0 })")
    }

    /// Counts the venues of a tenant, and saves one before if asked to.
    private static func request(to tenant: Tenant, saves: Bool) throws {
        let context = tenant.container.newBackgroundContext()
        try context.performAndWait {
            if saves {
                let sample = VenueSample(0, scale: Scale(venues: 1000))
                let venue = Venue(context: context)
                venue.set(from: sample)
                try context.save()
            }
            guard try context.count(for: NSFetchRequest<Venue>(entityName: "Venue")) > 0 else {
                throw BenchError("A tenant has lost its venue")
            }
        }
    }

    private static func close(_ tenants: TenantContainer) throws {
        let done = DispatchSemaphore(value: 0)
        Task {
            try? await tenants.close()
            done.signal()
        }
        done.wait()
    }

    /// Does something for each element, on several threads, and notes how long each took.
    private static func each<E: Sendable>(_ elements: [E], _ body: @escaping @Sendable (E) throws -> Void) throws
        -> Latencies
    {
        let next = Atomic(0)
        let all = Mutex(Latencies())
        let failure = Mutex<(any Error)?>(nil)
        let group = DispatchGroup()
        for _ in 0..<threads {
            group.enter()
            Thread {
                defer { group.leave() }
                var own = Latencies()
                while failure.withLock({ $0 == nil }) {
                    let index = next.add(1, ordering: .relaxed).oldValue
                    guard index < elements.count else { break }
                    let start = ContinuousClock.now
                    do { try body(elements[index]) } catch { failure.withLock { $0 = error } }
                    own.add(.now - start)
                }
                all.withLock { [own] in $0.add(own) }
            }.start()
        }
        group.wait()
        if let error = failure.withLock({ $0 }) { throw error }
        return all.withLock { $0 }
    }

    private static func text(_ times: Latencies) -> String {
        String(format: "median %.1f ms, p99 %.1f ms", times.milliseconds(0.5), times.milliseconds(0.99))
    }
}
#endif
