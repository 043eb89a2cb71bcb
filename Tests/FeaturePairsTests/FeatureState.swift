import Foundation

/// All objects of a store or of a context, kept in dictionaries.
///
/// It shares no code with the framework. Serial numbers stand for objects.
struct FeatureState: Equatable {
    struct Record: Equatable {
        var entity: String
        /// The attributes that have a value, as texts.
        var values: [String: String] = [:]
        /// The members of relationships that have some; those without an order are sorted.
        var links: [String: [Int]] = [:]
    }

    /// How an object differs from a former state.
    enum Change: Equatable {
        case inserted
        case deleted
        case updated(Set<String>)
    }

    /// The attributes that stores compute when they save.
    static let derived: Set<String> = ["partCount", "lowText"]

    var records: [Int: Record] = [:]

    func links(_ serial: Int, _ name: String) -> [Int] { records[serial]?.links[name] ?? [] }

    func all(_ entity: String) -> [Int] {
        records.filter { $1.entity == entity || entity == "Item" && $1.entity == "Special" }.keys.sorted()
    }

    // MARK: - Changes

    mutating func set(_ serial: Int, _ key: String, _ value: Any?) {
        records[serial]?.values[key] = value.map(Self.text)
    }

    /// Relates two objects on both sides; the first one gets the other at a place, or at the end.
    mutating func connect(_ one: Int, _ name: String, _ other: Int, at place: Int? = nil) {
        guard let link = FeatureLink.named[name], let back = FeatureLink.named[link.inverse],
            !links(one, name).contains(other)
        else { return }
        if link.kind == .one, let former = links(one, name).first { disconnect(one, name, former) }
        if back.kind == .one, let former = links(other, back.name).first { disconnect(former, name, one: other) }
        add(other, to: one, link, place)
        // A relationship that is its own inverse has only one list for an object and itself.
        if name != back.name || one != other { add(one, to: other, back, nil) }
    }

    private mutating func disconnect(_ one: Int, _ name: String, one other: Int) { disconnect(one, name, other) }

    mutating func disconnect(_ one: Int, _ name: String, _ other: Int) {
        guard let link = FeatureLink.named[name] else { return }
        remove(other, from: one, name)
        remove(one, from: other, link.inverse)
    }

    /// Gives an ordered relationship another order of the same members.
    mutating func order(_ one: Int, _ name: String, _ members: [Int]) { records[one]?.links[name] = members }

    private mutating func add(_ member: Int, to one: Int, _ link: FeatureLink, _ place: Int?) {
        var members = links(one, link.name)
        switch link.kind {
        case .one: members = [member]
        case .many: members = (members + [member]).sorted()
        case .ordered: members.insert(member, at: min(place ?? members.count, members.count))
        }
        records[one]?.links[link.name] = members
    }

    private mutating func remove(_ member: Int, from one: Int, _ name: String) {
        let members = links(one, name).filter { $0 != member }
        records[one]?.links[name] = members.isEmpty ? nil : members
    }

    /// Deletes an object, with the effects of the delete rules.
    mutating func delete(_ serial: Int) {
        guard let record = records[serial] else { return }
        for link in FeatureLink.of(record.entity) {
            for member in links(serial, link.name) {
                disconnect(serial, link.name, member)
                if link.rule == .cascade { delete(member) }
            }
        }
        records[serial] = nil
    }

    /// What a store computes when it saves.
    mutating func derive() {
        for serial in all("Item") {
            let (count, text) = (links(serial, "parts").count, records[serial]?.values["text"]?.lowercased())
            records[serial]?.values["partCount"] = String(count)
            records[serial]?.values["lowText"] = text
        }
    }

    // MARK: - Comparing

    /// The objects that differ from a former state.
    func changes(from former: FeatureState, withDerived: Bool = false) -> [Int: Change] {
        var changes: [Int: Change] = [:]
        for serial in Set(records.keys).union(former.records.keys) {
            guard let new = records[serial] else {
                changes[serial] = .deleted
                continue
            }
            guard let old = former.records[serial] else {
                changes[serial] = .inserted
                continue
            }
            var keys: Set<String> = []
            for key in Set(new.values.keys).union(old.values.keys) where new.values[key] != old.values[key] {
                if withDerived || !Self.derived.contains(key) { keys.insert(key) }
            }
            for key in Set(new.links.keys).union(old.links.keys) where new.links[key] != old.links[key] {
                keys.insert(key)
            }
            if !keys.isEmpty { changes[serial] = .updated(keys) }
        }
        return changes
    }

    /// Compares with what is expected.
    ///
    /// - Parameters:
    ///   - wanted: What is expected.
    ///   - stored: The stored state: other objects have no derived attributes yet. `nil` if all are stored.
    /// - Returns: The first difference; `nil` if there is none.
    func difference(from wanted: FeatureState, stored: FeatureState? = nil) -> String? {
        for serial in Set(records.keys).union(wanted.records.keys).sorted() {
            guard var new = records[serial] else { return "\(serial) is missing" }
            guard var old = wanted.records[serial] else { return "\(serial) is there, a \(new.entity)" }
            if let stored, stored.records[serial] == nil {
                for key in Self.derived { (new.values[key], old.values[key]) = (nil, nil) }
            }
            guard new != old else { continue }
            if new.entity != old.entity { return "\(serial) is a \(new.entity), expected \(old.entity)" }
            for key in Set(new.values.keys).union(old.values.keys).sorted() where new.values[key] != old.values[key] {
                return "\(new.entity) \(serial).\(key) is \(new.values[key] ?? "nil"), "
                    + "expected \(old.values[key] ?? "nil")"
            }
            for key in Set(new.links.keys).union(old.links.keys).sorted() where new.links[key] != old.links[key] {
                return "\(new.entity) \(serial).\(key) is \(new.links[key] ?? []), expected \(old.links[key] ?? [])"
            }
        }
        return nil
    }

    /// A value as a text by which values are compared.
    static func text(_ value: Any) -> String {
        switch value {
        case let data as Data: "\(data.count) bytes of \(data.first ?? 0) and \(data.last ?? 0)"
        case let date as Date: "\(date.timeIntervalSinceReferenceDate)"
        case let flag as Bool: flag ? "1" : "0"
        case let url as URL: url.absoluteString
        default: "\(value)"
        }
    }
}
