import StrataRows
import StrataSQL

/// The derived attributes of a store: the source of each, and the changes that make attributes of other rows outdated.
///
/// It is made when the store is opened, and is immutable.
struct DerivedPlan: Sendable {
    /// A derived attribute of an entity.
    struct Attribute: Sendable {
        let slot: Slot
        /// The source of the value.
        ///
        /// It is `nil` for a derivation that stores do not keep; the value is then nil too.
        let source: DerivedSource?
    }

    /// A column of members with the key of an owner that derives a value from them.
    struct MemberKey: Sendable, Hashable {
        let table: SQLName
        let column: SQLName
        /// The number of the root entity of the owners, in the model.
        let owners: Int
    }

    /// The columns of a join table whose pairs owners count.
    struct PairKeys: Sendable, Hashable {
        let table: SQLName
        let owner: SQLName
        let member: SQLName
        /// The numbers of the root entities of both sides, in the model.
        let owners: Int
        let members: Int
    }

    /// A column with the key of a row that an attribute is copied from.
    struct CopyKey: Sendable, Hashable {
        let table: SQLName
        let column: SQLName
        /// The number of the root entity of the rows that copy, in the model.
        let copiers: Int
    }

    /// The derived attributes, by the number of the entity in the model.
    let attributes: [[Attribute]]
    /// The keys of owners, by the number of the root entity of the members.
    private(set) var memberKeys: [Int: Set<MemberKey>] = [:]
    private(set) var pairKeys: Set<PairKeys> = []
    /// The keys of copied rows, by the number of the root entity that is copied from.
    private(set) var copyKeys: [Int: Set<CopyKey>] = [:]
    /// The slots of a member that its owners derive values from, by the number of its entity in the model.
    private(set) var memberSlots: [SlotSet]
    /// The slots of a row that others copy, by the number of its entity in the model.
    private(set) var copiedSlots: [SlotSet]
    /// Whether a value is derived from another derived value.
    private(set) var isChained = false

    /// The derived attributes of a store; `nil` if its entities have none.
    init?(_ mapping: SQLMapping) {
        guard let schema = mapping.entities.first?.layout.schema,
            mapping.entities.contains(where: \.layout.hasDerivedSlots)
        else { return nil }
        var attributes = [[Attribute]](repeating: [], count: schema.entities.count + 1)
        memberSlots = Array(repeating: SlotSet(), count: attributes.count)
        copiedSlots = Array(repeating: SlotSet(), count: attributes.count)
        for entity in mapping.entities {
            attributes[entity.layout.number] = entity.layout.slots.filter(\.isDerived).map {
                Attribute(slot: $0, source: DerivedSource($0.traits?.derivation, entity.layout))
            }
        }
        self.attributes = attributes
        for entity in mapping.entities {
            for slot in entity.layout.ownSlots where slot.isDerived {
                switch DerivedSource(slot.traits?.derivation, entity.layout) {
                case .count(let relationship)?: follow(relationship, attribute: nil, of: entity, in: mapping)
                case .aggregate(_, let relationship, let name)?:
                    follow(relationship, attribute: name, of: entity, in: mapping)
                case .copy(let reference, let name)?: follow(reference, attribute: name, of: entity, in: mapping)
                case .function(_, let source)?: if source.isDerived { isChained = true }
                case .now?, nil: break
                }
            }
        }
    }

    private mutating func follow(
        _ relationship: ToManySlot,
        attribute name: String?,
        of owner: EntityMapping,
        in mapping: SQLMapping
    ) {
        guard let members = mapping.entity(modelNumber: relationship.destinationNumber) else { return }
        let (owners, root) = (owner.layout.rootNumber, members.layout.rootNumber)
        switch owner.toMany[relationship.index] {
        case .key(let key):
            memberKeys[root, default: []].insert(MemberKey(table: key.table, column: key.column, owners: owners))
            let inverse = key.isWithoutInverse ? nil : relationship.relationship.inverse?.name
            for member in Self.subtree(members.layout) {
                for name in [inverse, name] {
                    guard let slot = name.flatMap({ member.slot(named: $0) }) else { continue }
                    memberSlots[member.number].insert(slot.index)
                    if slot.isDerived { isChained = true }
                }
            }
        case .join(let side):
            pairKeys.insert(
                PairKeys(table: side.table, owner: side.owner, member: side.member, owners: owners, members: root)
            )
        case .absent: break
        }
    }

    private mutating func follow(
        _ reference: Slot,
        attribute name: String,
        of copier: EntityMapping,
        in mapping: SQLMapping
    ) {
        guard let column = copier.columns[reference.index].name,
            let source = mapping.entity(modelNumber: reference.destinationNumber)
        else { return }
        copyKeys[source.layout.rootNumber, default: []].insert(
            CopyKey(table: copier.table, column: column, copiers: copier.layout.rootNumber)
        )
        for entity in Self.subtree(source.layout) {
            guard let slot = entity.slot(named: name) else { continue }
            copiedSlots[entity.number].insert(slot.index)
            if slot.isDerived { isChained = true }
        }
    }

    private static func subtree(_ layout: EntityLayout) -> [EntityLayout] {
        layout.subtree.map { layout.schema.entities[$0 - 1] }
    }
}
