import Expectations
import StrataMemoryStore
import StrataPredicates
import StrataRows

/// A schema with a relationship and a derived attribute of every kind.
///
/// A `Crate` is in an ordered `Rack`, may have one `Seal`, and has `Mark`s in an order, and parts that go with it. Racks wish for crates without
/// an inverse, and a crate has a spare rack without one. `Big` crates are crates too.
enum Depot {
    static let schema: Schema = {
        var crate = EntityDefinition(name: "Crate", companion: Warehouse.Description())
        crate.properties = [
            Warehouse.attribute("name", .string), Warehouse.attribute("code", .string),
            Warehouse.attribute("price", .double),
            Warehouse.attribute("size", .integer16), Warehouse.attribute("sign", .string, "uppercase:(name)"),
            Warehouse.attribute("place", .string, "rack.label"), Warehouse.attribute("home", .string, "spare.label"),
            Warehouse.relationship("rack", to: 3, inverse: "crates"),
            Warehouse.relationship("spare", to: 3, inverse: nil),
            Warehouse.relationship("seal", to: 4, inverse: "crate"),
            Warehouse.relationship("marks", to: 5, inverse: "crates", isToMany: true, isOrdered: true),
            Warehouse.relationship("parts", to: 6, inverse: "crate", isToMany: true, rule: .cascade),
        ]
        crate.uniquenessConstraints = [["code"]]
        var big = EntityDefinition(name: "Big", companion: Warehouse.Description())
        big.parent = 1
        big.properties = [Warehouse.attribute("weight", .double)]
        var rack = EntityDefinition(name: "Rack", companion: Warehouse.Description())
        rack.properties = [
            Warehouse.attribute("label", .string), Warehouse.attribute("count", .integer64, "count:(crates)"),
            Warehouse.attribute("worth", .double, "sum:(crates.price)"),
            Warehouse.attribute("dearest", .double, "max:(crates.price)"),
            Warehouse.attribute("mean", .double, "average:(crates.price)"),
            Warehouse.attribute("wished", .integer64, "count:(wishes)"),
            Warehouse.attribute("wishWorth", .double, "sum:(wishes.price)"),
            Warehouse.relationship("crates", to: 1, inverse: "rack", isToMany: true, isOrdered: true, rule: .deny),
            Warehouse.relationship("wishes", to: 1, inverse: nil, isToMany: true),
        ]
        var seal = EntityDefinition(name: "Seal", companion: Warehouse.Description())
        seal.properties = [
            Warehouse.attribute("text", .string), Warehouse.relationship("crate", to: 1, inverse: "seal"),
        ]
        var mark = EntityDefinition(name: "Mark", companion: Warehouse.Description())
        mark.properties = [
            Warehouse.attribute("word", .string),
            Warehouse.relationship("crates", to: 1, inverse: "marks", isToMany: true),
        ]
        var part = EntityDefinition(name: "Part", companion: Warehouse.Description())
        part.properties = [
            Warehouse.attribute("number", .integer32), Warehouse.relationship("crate", to: 1, inverse: "parts"),
            Warehouse.relationship("owner", to: 7, inverse: "belongings", isOptional: false),
        ]
        var owner = EntityDefinition(name: "Owner", companion: Warehouse.Description())
        owner.properties = [Warehouse.relationship("belongings", to: 6, inverse: "owner", isToMany: true)]
        return Schema([crate, big, rack, seal, mark, part, owner])
    }()

    static let crate = schema.entities[0]
    static let big = schema.entities[1]
    static let rack = schema.entities[2]
    static let seal = schema.entities[3]
    static let mark = schema.entities[4]
    static let part = schema.entities[5]
    static let owner = schema.entities[6]
}

extension MemoryEngine {
    /// All that the store has: a line for each row with its version and its values, and for each relationship with members.
    func state() throws -> [String] {
        let contents = snapshot
        var lines: [String] = []
        for layout in Depot.schema.entities where layout.parent == nil {
            for key in contents.rows[layout.rootNumber]?.sortedKeys ?? [] {
                guard let row = contents.rows[layout.rootNumber]?[key] else { continue }
                expectEqual(row.key, key)
                let values = row.layout.slots.compactMap { slot -> String? in
                    if slot.kind == .reference {
                        return row.reference(slot).map { "\(slot.name)=\($0.entity).\($0.key)" }
                    }
                    return row.anyValue(slot).map { "\(slot.name)=\($0)" }
                }
                let name = "\(row.layout.name) \(key)"
                lines.append((["\(name) v\(row.version)"] + values).joined(separator: " "))
                for slot in row.layout.toMany {
                    let members = contents.members(of: slot, ownedBy: key)
                    expectEqual(
                        contents.memberCount(of: slot.relationship, ownedBy: key),
                        members.count,
                        "\(name).\(slot.name)"
                    )
                    if members.isEmpty { continue }
                    lines.append(
                        "\(name).\(slot.name) \(members.map { "\($0.entity).\($0.key)" }.joined(separator: " "))"
                    )
                }
            }
        }
        return lines
    }
}
