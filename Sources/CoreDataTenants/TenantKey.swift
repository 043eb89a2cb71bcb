/// The name of a tenant as a key, by its bytes.
///
/// Swift takes texts as equal that differ in the form of their letters, such as an é of one or two scalars. Files and
/// schemas are named by bytes, so these are two tenants.
struct TenantKey: Hashable {
    let name: String

    init(_ name: String) { self.name = name }

    static func == (lhs: TenantKey, rhs: TenantKey) -> Bool { lhs.name.utf8.elementsEqual(rhs.name.utf8) }

    func hash(into hasher: inout Hasher) {
        for byte in name.utf8 { hasher.combine(byte) }
    }
}
