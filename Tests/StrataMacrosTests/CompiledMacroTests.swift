import Testing

@Suite("Macros in a real compilation")
struct CompiledMacroTests {
    @Test func `a value goes through the accessors to the runtime and back`() {
        let city = City()

        city.name = "Kraków"
        city.population = 804_237
        city.assign(code: "KRK")
        city.default = 7
        city.`opening hours` = "always"
        city.rank = 2

        #expect(city.name == "Kraków")
        #expect(city.population == 804_237)
        #expect(city.code == "KRK")
        #expect(city.default == 7)
        #expect(
            Set(city.values.keys) == ["name", "population", "code", "default", "opening hours", "rank"]
        )
        city.name = nil
        #expect(city.name == nil)
        #expect(city.values["name"] == nil)
    }

    @Test func `an explicit name is the one the runtime sees`() {
        let place = Place()

        place.summary = "old town"

        #expect(place.values["descriptionText"] as? String == "old town")
    }

    @Test func `raw representable types choose the overload for raw values`() {
        let city = City()

        city.priority = .high
        city.fallback = .low

        #expect(city.values["priority"] as? Int16 == 1)
        #expect(city.priority == .high)
        #expect(city.fallback == .low)
        city.fallback = nil
        #expect(city.fallback == nil)
    }

    @Test func `relationships keep their collection types`() {
        let city = City()
        let district = Countries.District()

        city.districts = [district]
        city.ordered = [district, district]
        city.twin = city
        district.city = city
        district.postalCode = "31-042"

        #expect(city.districts == [district])
        #expect(city.ordered.count == 2)
        #expect(city.twin === city)
        #expect(district.city === city)
        #expect(district.postalCode == "31-042")
        #expect(localClassRoundTrip(3) == 3)
    }

    @Test func `the table lists names, key paths and types, the superclass's first`() {
        let own = Place.managedProperties
        let inherited = City.managedProperties

        #expect(
            own.map(\.name) == [
                "name", "population", "code", "descriptionText", "default", "opening hours", "rank", "here",
            ]
        )
        #expect(own[0].keyPath == \Place.name)
        #expect(own[2].keyPath == \Place.code)
        #expect(own[5].keyPath == \Place.`opening hours`)
        #expect(ObjectIdentifier(own[0].type) == ObjectIdentifier(String?.self))
        #expect(inherited.prefix(own.count).map(\.name) == own.map(\.name))
        #expect(
            inherited.dropFirst(own.count).map(\.name) == [
                "priority", "fallback", "twin", "districts", "ordered", "rank",
            ]
        )
        #expect(inherited.last?.keyPath == \City.rank)
        #expect(ObjectIdentifier(inherited[own.count + 3].type) == ObjectIdentifier(Set<Countries.District>.self))
    }

    @Test func `nested, private and empty classes have tables too`() {
        #expect(Countries.District.managedProperties.map(\.name) == ["city", "secret", "neighbours"])
        #expect(hiddenProperties().map(\.name) == ["value"])
        #expect(ghostProperties().isEmpty)
        #expect(Suburb.managedProperties.map(\.name) == Place.managedProperties.map(\.name))
    }

    @Test func `the table follows the class it is asked of`() {
        let type: NSManagedObject.Type = City.self

        #expect(type.managedProperties.count == City.managedProperties.count)
    }
}
