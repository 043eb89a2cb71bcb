import Foundation
import StrataRows

extension NSManagedObject {
    /// The loaded values by name, one line for each property.
    ///
    /// It asks no store and makes no object.
    final var describedValues: String {
        guard let current else { return "" }
        var lines: [(name: String, value: String)] = layout.slots.map { ($0.name, described($0, in: current)) }
        lines += layout.toMany.map { ($0.name, described($0)) }
        if let values = extras?.transients {
            lines += zip(layout.transients, values).map { ($0.name, $1.map(Self.described) ?? "nil") }
        }
        lines.sort { $0.name < $1.name }
        return lines.map { "\n    \($0.name) = \($0.value)" }.joined() + "\n"
    }

    private func described(_ slot: Slot, in row: Row) -> String {
        guard !row.isNull(slot.index) else { return "nil" }
        switch slot.kind {
        case .reference: return row.reference(slot).map { described($0) } ?? "nil"
        case .data: return "\(row.data(slot.word).count) bytes"
        default: return row.anyValue(slot).map(Self.described) ?? "nil"
        }
    }

    /// A value as text.
    ///
    /// A date beyond every calendar is given in seconds, because its own description stops the program (Foundation on
    /// Linux).
    private static func described(_ value: Any) -> String {
        if let date = value as? Date, !(abs(date.timeIntervalSinceReferenceDate) < 1e12) {
            return "\(date.timeIntervalSinceReferenceDate) seconds since the reference date"
        }
        return short("\(value)")
    }

    private func described(_ slot: ToManySlot) -> String {
        guard let state = extras?.toMany[slot.index], let members = state.content else {
            let isNew = !flags.isDisjoint(with: [.inserted, .detached])
            return isNew ? "empty" : "<relationship fault>"
        }
        guard !members.isEmpty else { return "empty" }
        // The members are sorted, so that two descriptions of the same state are equal.
        let sorted = slot.isOrdered ? members : members.sorted { $0.key < $1.key }
        let some = sorted.prefix(Self.mostMembers).map { described($0) }.joined(separator: ", ")
        return members.count > Self.mostMembers ? "\(members.count) objects: \(some), …" : some
    }

    private func described(_ reference: ObjectReference) -> String {
        guard let context else { return reference.key < 0 ? "unsaved" : "p\(reference.key)" }
        return context.id(of: reference, near: self).description
    }

    /// The maximum number of members that are named.
    private static let mostMembers = 10

    private static func short(_ text: String) -> String {
        text.count > 200 ? "\(text.prefix(200))… (\(text.count) characters)" : text
    }
}
