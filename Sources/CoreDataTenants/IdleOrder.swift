/// The tenants whose stores are open and not used, in the order in which their last use ended.
///
/// Each operation takes constant time on average. A tenant that is used again leaves an outdated place, which is dropped later.
struct IdleOrder {
    private struct Place {
        let name: TenantKey
        let number: Int
        let since: ContinuousClock.Instant
    }

    private var places: [Place] = []
    private var start = 0
    private var numbers: [TenantKey: Int] = [:]
    private var last = 0

    /// The number of idle tenants.
    var count: Int { numbers.count }

    /// Adds a tenant at the end.
    mutating func append(_ name: TenantKey, at time: ContinuousClock.Instant) {
        last += 1
        numbers[name] = last
        places.append(Place(name: name, number: last, since: time))
        if places.count > 16 + 2 * numbers.count { dropOutdated() }
    }

    /// Removes a tenant, which is used or closed.
    mutating func remove(_ name: TenantKey) { numbers[name] = nil }

    /// The tenant that has been idle for longest, and since when.
    mutating func first() -> (name: TenantKey, since: ContinuousClock.Instant)? {
        while start < places.count {
            let place = places[start]
            if numbers[place.name] == place.number { return (place.name, place.since) }
            start += 1
        }
        return nil
    }

    private mutating func dropOutdated() {
        places = places[start...].filter { numbers[$0.name] == $0.number }
        start = 0
    }
}
