/// A direction of a relationship of the features' model; each has another name.
struct FeatureLink: Sendable {
    enum Kind: Sendable { case one, many, ordered }
    enum Rule: Sendable { case nullify, cascade, deny }

    let entity: String
    let name: String
    let kind: Kind
    let rule: Rule
    let target: String
    let inverse: String

    /// All directions: one to one side, one to many, ordered and not, many to many with one ordered side, and a
    /// relationship that is its own inverse; with each delete rule that keeps both sides the same.
    static let all: [FeatureLink] = [
        FeatureLink("Item", "owner", .one, .nullify, "Owner", "belongings"),
        FeatureLink("Owner", "belongings", .ordered, .nullify, "Item", "owner"),
        FeatureLink("Item", "parts", .ordered, .cascade, "Part", "whole"),
        FeatureLink("Part", "whole", .one, .nullify, "Item", "parts"),
        FeatureLink("Item", "tags", .many, .nullify, "Tag", "marked"),
        FeatureLink("Tag", "marked", .ordered, .nullify, "Item", "tags"),
        FeatureLink("Item", "vault", .one, .nullify, "Vault", "contents"),
        FeatureLink("Vault", "contents", .many, .deny, "Item", "vault"),
        FeatureLink("Item", "friends", .many, .nullify, "Item", "friends"),
    ]

    static let named = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })

    /// The links of an entity, in an order that is always the same.
    static func of(_ entity: String) -> [FeatureLink] {
        all.filter { $0.entity == entity || $0.entity == "Item" && entity == "Special" }
    }

    private init(_ entity: String, _ name: String, _ kind: Kind, _ rule: Rule, _ target: String, _ inverse: String) {
        (self.entity, self.name, self.kind, self.rule) = (entity, name, kind, rule)
        (self.target, self.inverse) = (target, inverse)
    }
}
