import Foundation
import StrataRows

/// One relationship to prefetch, and the relationships to prefetch from its objects.
struct PrefetchStep {
    /// The place of the relationship in its entity's objects.
    enum Place {
        case toOne(Slot)
        case toMany(ToManySlot)
    }

    let place: Place
    /// The declared destination.
    let destination: EntityLayout
    var next: [PrefetchStep] = []

    var isToOne: Bool {
        if case .toOne = place { true } else { false }
    }
}

extension FetchPlanner {
    /// The relationships in key paths; each occurs once, however many paths begin with it.
    ///
    /// - Throws: `persistentStoreOperation` (134070) for a key that is no stored relationship, with a text that names the
    ///   path, the key and the entity.
    func prefetches(_ keyPaths: [String], of layout: EntityLayout) throws -> [PrefetchStep] {
        var steps: [PrefetchStep] = []
        for keyPath in keyPaths {
            let keys = keyPath.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
            guard keys.count <= Self.longestPath else {
                throw Self.refused(
                    "A fetch cannot prefetch \"\(keyPath)\": the path has more than \(Self.longestPath) steps."
                )
            }
            try add(keys[...], to: &steps, of: layout, keyPath)
        }
        return steps
    }

    /// The maximum length of a key path in a predicate.
    private static let longestPath = 60

    private func add(
        _ keys: ArraySlice<String>,
        to steps: inout [PrefetchStep],
        of layout: EntityLayout,
        _ keyPath: String
    ) throws {
        guard let key = keys.first else { return }
        let index: Int
        if let known = steps.firstIndex(where: { $0.name == key }) {
            index = known
        } else {
            index = steps.count
            steps.append(try step(key, of: layout, keyPath))
        }
        try add(keys.dropFirst(), to: &steps[index].next, of: steps[index].destination, keyPath)
    }

    private func step(_ key: String, of layout: EntityLayout, _ keyPath: String) throws -> PrefetchStep {
        let name = layout.entity.name ?? ""
        func refusal(_ reason: String) -> CocoaError {
            Self.refused("A fetch cannot prefetch \"\(keyPath)\": \(reason)")
        }
        switch layout.places[key] {
        case .slot(let index):
            let slot = layout.slots[index]
            guard let destination = slot.relationship?.destination else { break }
            return PrefetchStep(place: .toOne(slot), destination: destination)
        case .toMany(let index):
            let slot = layout.toMany[index]
            guard let destination = slot.relationship.destination, !slot.isTransient else {
                throw refusal("\"\(key)\" of \(name) is transient, so no store has it.")
            }
            return PrefetchStep(place: .toMany(slot), destination: destination)
        case nil:
            throw refusal("entity \(name) has no property \"\(key)\".")
        case .transient, .composite, .fetched:
            break
        }
        throw refusal("\"\(key)\" of \(name) is no stored relationship. Name relationships only.")
    }
}

extension PrefetchStep {
    fileprivate var name: String {
        switch place {
        case .toOne(let slot): slot.name
        case .toMany(let slot): slot.name
        }
    }
}
