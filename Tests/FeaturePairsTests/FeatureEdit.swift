import CoreData
import Expectations

/// A change as it is made in a state, and with objects.
struct FeatureChange {
    var change: (inout FeatureState) -> Void
    /// Makes the change; called inside the scope of the context.
    var make: (NSManagedObjectContext) throws -> Void
}

/// A kind of change of the object in focus, and of what is related to it.
///
/// It can be made in any context: here, in a child, or elsewhere.
struct FeatureEdit: Sendable {
    let name: String
    /// Draws a change of an object in a state; `nil` if there is none of this kind.
    let draw: @Sendable (FeatureState, Int, FeatureWorld) -> FeatureChange?

    init(_ name: String, _ draw: @escaping @Sendable (FeatureState, Int, FeatureWorld) -> FeatureChange?) {
        (self.name, self.draw) = (name, draw)
    }

    static let all = attributes + toOne + ordered + unordered + deletions

    // MARK: - Attributes

    /// A change of an attribute to a value that no object has had.
    private static func attribute(_ name: String, _ key: String, _ value: @escaping @Sendable (Int) -> Any?)
        -> FeatureEdit
    {
        FeatureEdit(name) { state, focus, world in
            guard state.records[focus] != nil else { return nil }
            let value = value(world.next())
            guard state.records[focus]?.values[key] != value.map(FeatureState.text) else { return nil }
            return FeatureChange {
                $0.set(focus, key, value)
            } make: {
                try world.object(focus, in: $0).setValue(value, forKey: key)
            }
        }
    }

    static let number = attribute("number", "number") { 100 + $0 }
    static let text = attribute("text", "text") { "Text \($0)" }
    static let blob = attribute("large blob", "blob") { Data(repeating: UInt8($0 % 200 + 1), count: 200_000 + $0) }

    private static let attributes: [FeatureEdit] = [
        number, text, blob, attribute("no text", "text") { _ in nil },
        attribute("small blob", "blob") { Data(repeating: UInt8($0 % 200 + 1), count: 10 + $0 % 5) },
        attribute("no blob", "blob") { _ in nil }, attribute("flag", "flag") { $0 % 2 == 0 },
        attribute("ratio", "ratio") { Double($0) + 0.25 },
        attribute("price", "price") { Decimal($0) + Decimal(string: "0.1")! },
        attribute("day", "day") { Date(timeIntervalSinceReferenceDate: Double($0 * 60)) },
        attribute("code", "code") { UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, UInt8($0 % 256))) },
        attribute("site", "site") { URL(string: "https://example.org/\($0)") },
        attribute("small data", "small") { Data(repeating: UInt8($0 % 200 + 1), count: 1 + $0 % 7) },
        attribute("rank", "rank") { $0 % 3 == 0 ? nil : $0 % 1000 },
        FeatureEdit("several attributes") { state, focus, world in
            guard state.records[focus] != nil else { return nil }
            let (number, text) = (100 + world.next(), "Text \(world.next())")
            let data = Data(repeating: 7, count: 150_000 + number)
            return FeatureChange {
                $0.set(focus, "number", number)
                $0.set(focus, "text", text)
                $0.set(focus, "blob", data)
            } make: {
                let item = try world.object(focus, in: $0)
                item.setValuesForKeys(["number": number, "text": text, "blob": data])
            }
        },
    ]

    // MARK: - To-one relationships

    private static func other(_ entity: String, than former: Int?, _ state: FeatureState) -> Int? {
        state.all(entity).first { $0 != former }
    }

    /// Relates two objects by a to-one relationship of the first one.
    private static func lead(_ world: FeatureWorld, _ one: Int, _ key: String, _ other: Int?) -> FeatureChange {
        FeatureChange { state in
            if let other { return state.connect(one, key, other) }
            for member in state.links(one, key) { state.disconnect(one, key, member) }
        } make: { context in
            let (object, target) = (
                try world.object(one, in: context), try other.map { try world.object($0, in: context) }
            )
            // If the other side is not loaded, then an object that comes back to it gets its former place.
            if let target, let link = FeatureLink.named[key] { _ = target.value(forKey: link.inverse) }
            object.setValue(target, forKey: key)
        }
    }

    static let owner = FeatureEdit("owner") { state, focus, world in
        guard let item = state.records[focus], let next = other("Owner", than: item.links["owner"]?.first, state)
        else { return nil }
        return lead(world, focus, "owner", next)
    }

    static let vault = FeatureEdit("into the vault") { state, focus, world in
        guard let item = state.records[focus], item.links["vault"] == nil, let vault = state.all("Vault").first
        else { return nil }
        return lead(world, focus, "vault", vault)
    }

    private static let toOne: [FeatureEdit] = [
        owner, vault,
        FeatureEdit("no owner") { state, focus, world in
            state.records[focus]?.links["owner"] == nil ? nil : lead(world, focus, "owner", nil)
        },
        FeatureEdit("out of the vault") { state, focus, world in
            state.records[focus]?.links["vault"] == nil ? nil : lead(world, focus, "vault", nil)
        },
        FeatureEdit("a part of another item") { state, focus, world in
            guard state.records[focus] != nil, let other = other("Item", than: focus, state),
                let part = state.links(other, "parts").first
            else { return nil }
            return lead(world, part, "whole", focus)
        },
        FeatureEdit("a part by itself") { state, focus, world in
            guard let part = state.links(focus, "parts").first else { return nil }
            return lead(world, part, "whole", nil)
        },
    ]

    // MARK: - Ordered relationships

    /// Moves the first member to the end.
    private static func turn(_ world: FeatureWorld, _ one: Int, _ key: String, _ members: [Int]) -> FeatureChange? {
        guard members.count > 1 else { return nil }
        return FeatureChange {
            $0.order(one, key, Array(members[1...]) + [members[0]])
        } make: {
            let list = try world.object(one, in: $0).mutableOrderedSetValue(forKey: key)
            list.moveObjects(at: IndexSet(integer: 0), to: list.count - 1)
        }
    }

    static let order = FeatureEdit("order") { state, focus, world in
        turn(world, focus, "parts", state.links(focus, "parts"))
    }

    static let newPart = FeatureEdit("new part") { state, focus, world in
        guard state.records[focus] != nil else { return nil }
        let part = world.next()
        return FeatureChange {
            $0.records[part] = FeatureState.Record(entity: "Part", values: ["serial": "\(part)"])
            $0.connect(focus, "parts", part, at: 0)
        } make: {
            let item = try world.object(focus, in: $0)
            item.mutableOrderedSetValue(forKey: "parts").insert(world.insert("Part", part, in: $0), at: 0)
        }
    }

    private static let ordered: [FeatureEdit] = [
        order, newPart,
        FeatureEdit("parts in reverse") { state, focus, world in
            let parts = state.links(focus, "parts")
            guard parts.count > 1 else { return nil }
            return FeatureChange {
                $0.order(focus, "parts", parts.reversed())
            } make: {
                let item = try world.object(focus, in: $0)
                let objects = (item.value(forKey: "parts") as? NSOrderedSet)?.array ?? []
                item.setValue(NSOrderedSet(array: objects.reversed()), forKey: "parts")
            }
        },
        FeatureEdit("order of the owner's items") { state, focus, world in
            guard let owner = state.links(focus, "owner").first else { return nil }
            return turn(world, owner, "belongings", state.links(owner, "belongings"))
        },
        FeatureEdit("first of the owner's items") { state, focus, world in
            guard let owner = other("Owner", than: state.links(focus, "owner").first, state),
                state.records[focus] != nil
            else { return nil }
            return FeatureChange {
                $0.connect(owner, "belongings", focus, at: 0)
            } make: {
                let (object, item) = (try world.object(owner, in: $0), try world.object(focus, in: $0))
                object.mutableOrderedSetValue(forKey: "belongings").insert(item, at: 0)
            }
        },
        FeatureEdit("order of the tag's items") { state, focus, world in
            guard let tag = state.links(focus, "tags").first else { return nil }
            return turn(world, tag, "marked", state.links(tag, "marked"))
        },
    ]

    // MARK: - Relationships without an order

    private static func join(_ world: FeatureWorld, _ one: Int, _ key: String, _ other: Int) -> FeatureChange {
        FeatureChange {
            $0.connect(one, key, other)
        } make: {
            let (object, member) = (try world.object(one, in: $0), try world.object(other, in: $0))
            if let link = FeatureLink.named[key] { _ = member.value(forKey: link.inverse) }
            if FeatureLink.named[key]?.kind == .ordered {
                object.mutableOrderedSetValue(forKey: key).add(member)
            } else {
                object.mutableSetValue(forKey: key).add(member)
            }
        }
    }

    private static func leave(_ world: FeatureWorld, _ one: Int, _ key: String, _ other: Int) -> FeatureChange {
        FeatureChange {
            $0.disconnect(one, key, other)
        } make: {
            let (object, member) = (try world.object(one, in: $0), try world.object(other, in: $0))
            if FeatureLink.named[key]?.kind == .ordered {
                object.mutableOrderedSetValue(forKey: key).remove(member)
            } else {
                object.mutableSetValue(forKey: key).remove(member)
            }
        }
    }

    private static func missingTag(_ state: FeatureState, _ focus: Int) -> Int? {
        guard let item = state.records[focus] else { return nil }
        return state.all("Tag").first { item.links["tags"]?.contains($0) != true }
    }

    static let tag = FeatureEdit("tag") { state, focus, world in
        missingTag(state, focus).map { join(world, focus, "tags", $0) }
    }

    static let untag = FeatureEdit("untag") { state, focus, world in
        state.links(focus, "tags").last.map { leave(world, focus, "tags", $0) }
    }

    static let friend = FeatureEdit("friend") { state, focus, world in
        guard let item = state.records[focus],
            let friend = state.all("Item").first(where: { $0 != focus && item.links["friends"]?.contains($0) != true })
        else { return nil }
        return join(world, focus, "friends", friend)
    }

    private static let unordered: [FeatureEdit] = [
        tag, untag, friend,
        FeatureEdit("tag, by the tag") { state, focus, world in
            missingTag(state, focus).map { join(world, $0, "marked", focus) }
        },
        FeatureEdit("untag, by the tag") { state, focus, world in
            state.links(focus, "tags").first.map { leave(world, $0, "marked", focus) }
        },
        FeatureEdit("no friend") { state, focus, world in
            state.links(focus, "friends").first.map { leave(world, focus, "friends", $0) }
        },
        FeatureEdit("friend of itself") { state, focus, world in
            guard let item = state.records[focus], item.links["friends"]?.contains(focus) != true else { return nil }
            return join(world, focus, "friends", focus)
        },
        FeatureEdit("other tags") { state, focus, world in
            guard let item = state.records[focus], let added = missingTag(state, focus) else { return nil }
            return FeatureChange { next in
                for tag in item.links["tags"] ?? [] { next.disconnect(focus, "tags", tag) }
                next.connect(focus, "tags", added)
            } make: {
                let (object, tag) = (try world.object(focus, in: $0), try world.object(added, in: $0))
                _ = tag.value(forKey: "marked")
                object.setValue(NSSet(object: tag), forKey: "tags")
            }
        },
        FeatureEdit("into the vault, by the vault") { state, focus, world in
            guard let item = state.records[focus], item.links["vault"] == nil, let vault = state.all("Vault").first
            else { return nil }
            return join(world, vault, "contents", focus)
        },
    ]

    // MARK: - Deletions

    private static func deletion(_ name: String, _ victim: @escaping @Sendable (FeatureState, Int) -> Int?)
        -> FeatureEdit
    {
        FeatureEdit(name) { state, focus, world in
            guard state.records[focus] != nil, let victim = victim(state, focus) else { return nil }
            return FeatureChange {
                $0.delete(victim)
            } make: {
                $0.delete(try world.object(victim, in: $0))
            }
        }
    }

    static let deletion = deletion("deletion") { $1 }
    static let partDeletion = deletion("deleted part") { $0.links($1, "parts").last }
    static let tagDeletion = deletion("deleted tag") { $0.all("Tag").count > 2 ? $0.links($1, "tags").first : nil }

    private static let deletions: [FeatureEdit] = [
        deletion, partDeletion, tagDeletion,
        deletion("deleted owner") { $0.all("Owner").count > 1 ? $0.links($1, "owner").first : nil },
        deletion("deleted friend") { state, focus in state.links(focus, "friends").first { $0 != focus } },
        deletion("deleted empty vault") { state, _ in
            state.all("Vault").first { state.links($0, "contents").isEmpty }
        },
    ]
}
